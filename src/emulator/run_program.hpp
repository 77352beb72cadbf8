// Runs another program and takes what it prints.
#pragma once

#include <string>
#include <vector>

namespace fastgemm::emulated {

struct ProgramResult {
  int status = -1;     // 0: it ended well
  std::string output;  // of both its streams
};

// By name through PATH; no shell in between.
ProgramResult run_program(const std::vector<std::string>& command);

bool has_program(const std::string& name);

}  // namespace fastgemm::emulated
