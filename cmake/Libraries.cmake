# Libraries as archives out of unpacked Debian packages (TALLY_LIBRARIES), instead of those that are installed: where nobody
# may install any (scripts/fetch-libraries), and for a wheel (cmake/wheel.cmake).
list(PREPEND CMAKE_MODULE_PATH ${CMAKE_SOURCE_DIR}/cmake/static)
set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
if(NOT CMAKE_SYSROOT)
  file(GLOB tally_multiarch RELATIVE ${TALLY_LIBRARIES}/usr/lib ${TALLY_LIBRARIES}/usr/lib/*-linux-gnu)
  set(CMAKE_LIBRARY_ARCHITECTURE ${tally_multiarch})
  list(PREPEND CMAKE_PREFIX_PATH ${TALLY_LIBRARIES}/usr)
  include_directories(SYSTEM ${TALLY_LIBRARIES}/usr/include ${TALLY_LIBRARIES}/usr/include/${tally_multiarch})
endif()
# LibTorch has functions of the same names as some of these, and must not find ours.
string(CONCAT tally_hidden libstdc++.a:libtally_compatible.a:libicuuc.a:libicudata.a:libcrypto.a:libz.a:libpcre2-8.a
  :libxxhash.a:libtally_fmt.a:libyaml-cpp.a:libpugixml.a:libsqlite3.a)
add_link_options(-Wl,--exclude-libs,${tally_hidden})
