# Run by the build (CommandTexts.cmake): PROGRAM, by EMULATOR where it is of another machine, prints the texts about
# NAME, which go to the folder TO.
function(write_text name)
  execute_process(COMMAND ${EMULATOR} ${PROGRAM} ${ARGN} OUTPUT_FILE ${TO}/${name} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${PROGRAM} ${ARGN}: ended with ${result}; its texts are not complete")
  endif()
endfunction()
file(MAKE_DIRECTORY ${TO})
write_text(${NAME}.bash complete bash)
write_text(_${NAME} complete zsh)
write_text(${NAME}.fish complete fish)
write_text(${NAME}.1 manual)
