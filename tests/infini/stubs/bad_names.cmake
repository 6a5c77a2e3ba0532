# cmake -DMODULE=<infiniop_stubs.cmake> -DFOLDER=<scratch> -P bad_names.cmake: each bad line must stop CMake, named.
if(NOT CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  message(FATAL_ERROR "run this with cmake -P")
endif()
if(DEFINED LIST)  # an inner run: finds a list
  include(${MODULE})
  retrograd_find_infiniop_list(${LIST} result)
  message("found: ${result}")
  return()
endif()
if(DEFINED NAMES)  # an inner run: reads one file
  include(${MODULE})
  retrograd_read_infiniop_names(${NAMES} result)
  message("read: ${result}")
  return()
endif()

function(expect_refused text line)
  file(WRITE ${FOLDER}/bad_names.txt "# first\ngood_name\n${text}\nanother\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -DMODULE=${MODULE} -DNAMES=${FOLDER}/bad_names.txt -P ${CMAKE_SCRIPT_MODE_FILE}
    RESULT_VARIABLE code ERROR_VARIABLE error OUTPUT_QUIET)
  if(code EQUAL 0)
    message(FATAL_ERROR "accepted: ${text}")
  endif()
  string(REGEX REPLACE "[ \n]+" " " error "${error}")  # CMake folds its messages
  string(FIND "${error}" "bad_names.txt:3: \"${line}\" is not a C identifier" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "does not name line 3 and \"${line}\": ${error}")
  endif()
endfunction()

expect_refused("2infiniop" "2infiniop")
expect_refused("two names" "two names")
expect_refused("operator two names" "operator two names")
expect_refused("infiniop-gemm" "infiniop-gemm")
expect_refused("f(void)" "f(void)")
expect_refused("a;b" "a;b")
expect_refused("a[0]  # remark" "a[0]")

# A list of ours is found by its name; another name is refused with ours.
foreach(list infinicore infinicores)
  execute_process(COMMAND ${CMAKE_COMMAND} -DMODULE=${MODULE} -DLIST=${list} -P ${CMAKE_SCRIPT_MODE_FILE}
    RESULT_VARIABLE code ERROR_VARIABLE error OUTPUT_QUIET WORKING_DIRECTORY ${FOLDER})
  string(REGEX REPLACE "[ \n]+" " " error "${error}")
  if(list STREQUAL infinicore)
    if(NOT code EQUAL 0 OR NOT error MATCHES "found: .*/infiniop_stubs/infinicore.txt")
      message(FATAL_ERROR "infinicore is not found: ${error}")
    endif()
  elseif(code EQUAL 0 OR NOT error MATCHES "nor a list infinicores among ours: infinicore")
    message(FATAL_ERROR "does not name our lists: ${error}")
  endif()
endforeach()
