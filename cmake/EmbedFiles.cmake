# tally_embed_files(OUT FOLDER): writes OUT, C++ that has every file below FOLDER as bytes. The generated function is
# tally::embedded_files().
function(tally_embed_files out folder)
  file(GLOB_RECURSE files RELATIVE ${folder} CONFIGURE_DEPENDS ${folder}/*)
  list(SORT files)
  set(arrays "")
  set(table "")
  set(number 0)
  foreach(file ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/${file})
    file(READ ${folder}/${file} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(APPEND arrays "constexpr unsigned char k${number}[] = {${bytes}0};\n")
    string(APPEND table "    {\"${file}\", {reinterpret_cast<const char*>(k${number}), sizeof k${number} - 1}},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(CONFIGURE OUTPUT ${out} CONTENT "// Made by cmake/EmbedFiles.cmake from ${folder}.
#include \"engine/run/embedded_templates.h\"

namespace tally {
namespace {
@arrays@}  // namespace

std::vector<EmbeddedFile> embedded_files() {
  return {
@table@  };
}

}  // namespace tally
" @ONLY)
endfunction()
