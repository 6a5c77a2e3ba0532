# retrograd_export_only(target names…): the target exports these functions and nothing else.
function(retrograd_export_only target)
  list(REMOVE_DUPLICATES ARGN)
  list(JOIN ARGN ";\n    " names)
  # `local: *` also hides what templates of the standard library leave behind, which no visibility flag reaches.
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${target}.map)
  file(CONFIGURE OUTPUT ${script} CONTENT "{\n  global:\n    @names@;\n  local:\n    *;\n};\n" @ONLY)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${script})
  target_link_options(${target} PRIVATE LINKER:--version-script=${script})
endfunction()
