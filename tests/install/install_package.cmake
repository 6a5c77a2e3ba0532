# Installs the build folder BUILD to PREFIX by way of another folder: what is installed must stand being moved.
set(staged ${PREFIX}.staged)
file(REMOVE_RECURSE ${PREFIX} ${staged})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${staged} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${staged} ${PREFIX})
