// How the library's own stages report: through the application's hook, see fastgemm/log.hpp.
#pragma once

#include <string>

#include "fastgemm/log.hpp"

namespace fastgemm {

void log_info(const std::string& message);  // dropped unless verbose()
void log_warning(const std::string& message);

}  // namespace fastgemm
