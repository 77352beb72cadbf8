// The few file operations of the caches: whole files, private folders, atomic replacement.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fastgemm {

std::string absolute_path(const std::string& path);

// Makes the folder (0700) and its parents. Returns why nothing can be written there; empty when it
// can.
std::string prepare_folder(const std::string& folder);
bool is_readable_folder(const std::string& folder);

// <temporary files>/fastgemm-<user id>: counts as usable only where it is ours alone.
std::string private_temp_folder_name();

std::optional<std::string> read_file(const std::string& path);

// Sets the time of last use too, where that is allowed.
std::optional<std::string> read_file_and_touch(const std::string& path);

// Writes (0600) under a unique temporary name, syncs and renames, so that no reader ever sees a
// part of it. Returns what went wrong; empty when nothing did.
std::string write_file_atomically(const std::string& path, std::string_view content);

}  // namespace fastgemm
