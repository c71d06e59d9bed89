# The three kinds of target this project has, each with our warnings and sanitizers.
add_library(tally_flags INTERFACE)
if(TALLY_QUICK_BUILD)  # g++ looks for warnings in a twentieth of its time
  target_compile_options(tally_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-w>)
else()
  target_compile_options(tally_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers>)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A unit of many files has half a gigabyte of syntax trees, which g++ would look through for garbage again and again.
  target_compile_options(tally_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=786432>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlapping memory in "literal" + std::string where there is none (GCC bug 105329).
  target_compile_options(tally_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(TALLY_WERROR)
  target_compile_options(tally_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(TALLY_SANITIZE)
  target_compile_options(tally_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${TALLY_SANITIZE} -fno-omit-frame-pointer -g>)
  target_link_options(tally_flags INTERFACE -fsanitize=${TALLY_SANITIZE})
endif()

# tally_unity(TARGET FILE...): the files of a unity build in units of equal size, as few as can be.
function(tally_unity target)
  set(most 20)
  list(LENGTH ARGN files)
  math(EXPR units "(${files} + ${most} - 1) / ${most}")
  math(EXPR size "(${files} + ${units} - 1) / ${units}")
  set_property(TARGET ${target} PROPERTY UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

# tally_library(NAME SOURCES a.cc b.cc LINK other ...): a static library whose headers are included
# by their path from the top of the tree, as "engine/base/diagnostics.h". COLD: all of it, or COLD_SOURCES: these files parse
# flags, check, print, open files or start processes. A release optimizes them less and compiles them a third faster; a
# quick build still less, and another quarter faster.
function(tally_library name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;COLD_SOURCES;LINK" ${ARGN})
  set(level -O1)
  if(TALLY_QUICK_BUILD)
    set(level -Og)
  endif()
  set(less $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:${level}>)
  add_library(${name} STATIC ${ARG_SOURCES})
  tally_unity(${name} ${ARG_SOURCES})
  if(ARG_COLD_SOURCES)
    # Objects of their own, and not options of files: those would be compiled one at a time in every build.
    add_library(${name}_cold OBJECT ${ARG_COLD_SOURCES})
    tally_unity(${name}_cold ${ARG_COLD_SOURCES})
    target_include_directories(${name}_cold PRIVATE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${name}_cold PRIVATE tally_flags ${ARG_LINK})
    target_compile_options(${name}_cold PRIVATE ${less})
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:${name}_cold>)
  endif()
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE tally_flags PUBLIC ${ARG_LINK})
  if(ARG_COLD)
    target_compile_options(${name} PRIVATE ${less})
  endif()
endfunction()

# tally_test(NAME SOURCES x_test.cc LINK lib ... [LABELS ...] [ENVIRONMENT ...] [TIMEOUT SECONDS]): one doctest program,
# one CTest test. Cores are shared with other tests, and OpenMP's threads that spin while they wait would make a test
# of seconds one of minutes.
function(tally_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINK;LABELS;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${ARG_SOURCES} ${CMAKE_SOURCE_DIR}/tests/support/doctest_main.cc)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE TALLY_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                             TALLY_BINARY_DIR="${CMAKE_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE tally_flags ${ARG_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(left_out)
  if(CMAKE_CROSSCOMPILING)  # tests/support/suites.h
    set(left_out "--test-suite-exclude=sees how processes start and who they are,opens a library at run time")
  endif()
  add_test(NAME ${name} COMMAND ${name} ${left_out} WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 900)
  endif()
  if(CMAKE_CROSSCOMPILING)  # an emulator takes its time
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 5")
  endif()
  if(TALLY_SANITIZE MATCHES address)
    # Tests ask for more memory than there is; the sanitizer would end the program where malloc says no.
    list(APPEND ARG_ENVIRONMENT "ASAN_OPTIONS=allocator_may_return_null=1")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
                       ENVIRONMENT "OMP_WAIT_POLICY=passive;${ARG_ENVIRONMENT}")
endfunction()
