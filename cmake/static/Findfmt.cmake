# fmt for a static program. Where there is no libfmt.a, as on Debian, its functions are compiled from its headers.
find_path(FMT_INCLUDE_DIR fmt/format.h)
find_library(FMT_ARCHIVE libfmt.a)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(fmt REQUIRED_VARS FMT_INCLUDE_DIR)
if(fmt_FOUND AND NOT TARGET fmt::fmt)
  file(STRINGS ${FMT_INCLUDE_DIR}/fmt/core.h fmt_version REGEX "#define FMT_VERSION")
  if(FMT_ARCHIVE)
    add_library(fmt::fmt STATIC IMPORTED GLOBAL)
    set_target_properties(fmt::fmt PROPERTIES IMPORTED_LOCATION ${FMT_ARCHIVE}
      INTERFACE_INCLUDE_DIRECTORIES ${FMT_INCLUDE_DIR})
  elseif(fmt_version MATCHES "FMT_VERSION 9")
    add_library(tally_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt.cc)
    # As with the shared library, so that a compiler cache serves both builds.
    target_compile_definitions(tally_fmt INTERFACE FMT_SHARED)
    add_library(fmt::fmt ALIAS tally_fmt)
  else()
    add_library(fmt::fmt INTERFACE IMPORTED GLOBAL)
    set_target_properties(fmt::fmt PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${FMT_INCLUDE_DIR}
      INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
  endif()
endif()
