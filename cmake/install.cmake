# The installed package, in three components: library (what programs load), dev (what they are built with), tools (the
# program retrograd). cmake/packages.cmake makes a .deb of each. python/CMakeLists.txt has the component of the wheels.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/retrograd)

install(TARGETS retrograd EXPORT retrograd-shared
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# With the library and not with the headers: programs that were linked with a vendor's library ask for these at run time.
install(FILES ${RETROGRAD_LINKS} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
set(exports shared)
set(installed retrograd)
if(RETROGRAD_STATIC)
  install(TARGETS retrograd_static EXPORT retrograd-static
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  list(APPEND exports static)
  list(APPEND installed retrograd_static)
endif()
if(RETROGRAD_TOOLS)
  install(TARGETS retrograd_tool EXPORT retrograd-tools RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  list(APPEND installed retrograd_tool)
  # Not with dev, which may be there without the program: then find_package says that the component is not installed.
  install(EXPORT retrograd-tools NAMESPACE retrograd:: DESTINATION ${package_dir} COMPONENT tools)
endif()
# What must be built for `cmake --install`; `all` has the tests as well.
add_custom_target(retrograd_installed DEPENDS ${installed})

foreach(export ${exports})
  install(EXPORT retrograd-${export} NAMESPACE retrograd:: DESTINATION ${package_dir} COMPONENT dev)
endforeach()
configure_package_config_file(cmake/retrograd-config.cmake.in ${PROJECT_BINARY_DIR}/retrograd-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/retrograd-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/retrograd-config.cmake ${PROJECT_BINARY_DIR}/retrograd-config-version.cmake
  DESTINATION ${package_dir} COMPONENT dev)

# From the folder of the .pc files to the prefix, so that the installed tree may be moved.
file(RELATIVE_PATH prefix_from_pc /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
set(name retrograd)
set(libs "-L\${libdir} -lretrograd")
configure_file(cmake/retrograd.pc.in ${PROJECT_BINARY_DIR}/retrograd.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/retrograd.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
if(RETROGRAD_STATIC)
  # A module of its own: `--static` alone would still give the shared library to a linker that has both.
  set(name retrograd-static)
  set(libs "\${libdir}/libretrograd.a -lfmt -lhwy -lstdc++ -lm -lpthread -ldl")
  if(RETROGRAD_WITH_CUDA)
    string(APPEND libs " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt")
  endif()
  configure_file(cmake/retrograd.pc.in ${PROJECT_BINARY_DIR}/retrograd-static.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/retrograd-static.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endif()
