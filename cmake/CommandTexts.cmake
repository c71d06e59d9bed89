# tally_command_texts(PROGRAM BY COMPONENT): PROGRAM's completions and manual page, printed by the program BY whenever
# it is linked, and where they are installed.
function(tally_command_texts program by component)
  set(texts ${CMAKE_BINARY_DIR}/share)
  add_custom_command(TARGET ${by} POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} "-DEMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR}" -DPROGRAM=$<TARGET_FILE:${by}> -DNAME=${program} -DTO=${texts}
            -P ${CMAKE_SOURCE_DIR}/cmake/WriteCommandTexts.cmake)
  install(FILES ${texts}/${program}.bash RENAME ${program} COMPONENT ${component}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${texts}/_${program} COMPONENT ${component}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES ${texts}/${program}.fish COMPONENT ${component}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  install(FILES ${texts}/${program}.1 COMPONENT ${component} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endfunction()
