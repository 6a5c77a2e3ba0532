# The installed package: headers, the library under all its names, the program, retrograd-config.cmake, retrograd.pc, the license.
include(CMakePackageConfigHelpers)

install(TARGETS retrograd EXPORT retrograd-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(RETROGRAD_TOOLS)
  install(TARGETS retrograd_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES ${RETROGRAD_LINKS} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/retrograd)
install(EXPORT retrograd-targets NAMESPACE retrograd:: DESTINATION ${package_dir})
configure_package_config_file(cmake/retrograd-config.cmake.in ${PROJECT_BINARY_DIR}/retrograd-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/retrograd-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/retrograd-config.cmake ${PROJECT_BINARY_DIR}/retrograd-config-version.cmake
  DESTINATION ${package_dir})

# From the folder of retrograd.pc to the prefix, so that the installed tree may be moved.
file(RELATIVE_PATH prefix_from_pc /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
configure_file(cmake/retrograd.pc.in ${PROJECT_BINARY_DIR}/retrograd.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/retrograd.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
