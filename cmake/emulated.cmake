# retrograd_command(<target> <result>): what scripts and other programs start this target as. Where it was compiled for
# another machine that is a script of two lines, which starts it in the emulator.
function(retrograd_command target result)
  if(NOT CMAKE_CROSSCOMPILING OR NOT CMAKE_CROSSCOMPILING_EMULATOR)
    set(${result} $<TARGET_FILE:${target}> PARENT_SCOPE)
    return()
  endif()
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR "' '" emulator)
  set(script ${PROJECT_BINARY_DIR}/emulated/${target})
  file(GENERATE OUTPUT ${script} CONTENT "#!/bin/sh\nexec '${emulator}' '$<TARGET_FILE:${target}>' \"$@\"\n"
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  set(${result} ${script} PARENT_SCOPE)
endfunction()
