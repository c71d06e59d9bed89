// Users, groups and hosts as this machine's name service knows them.
//
// A static program (TALLY_STATIC) asks `getent`: the C library's own functions would load the
// machine's modules for LDAP or SSSD, which need the C library that they were built with.
#pragma once

#include <optional>
#include <string>

namespace tally {

// The user's home folder, without $HOME. Empty `user`: the user of this process. "" if unknown.
std::string home_folder(const std::string& user);
// The name of the process's effective user, or its number.
std::string effective_user();
std::optional<long> group_id(const std::string& name);
// The text that getaddrinfo() can be given for a host without loading a module. "" if unknown.
std::string host_to_resolve(const std::string& host);

}  // namespace tally
