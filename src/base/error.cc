#include "base/error.h"

#include <array>
#include <cerrno>
#include <system_error>

namespace funcpipe {
namespace {

constexpr std::array<std::pair<ErrorCode, std::string_view>, 12> kNames = {{
    {ErrorCode::kInvalidArgument, "invalid_argument"},
    {ErrorCode::kNotFound, "not_found"},
    {ErrorCode::kAlreadyExists, "already_exists"},
    {ErrorCode::kFailedPrecondition, "failed_precondition"},
    {ErrorCode::kResourceExhausted, "resource_exhausted"},
    {ErrorCode::kDeadlineExceeded, "deadline_exceeded"},
    {ErrorCode::kCancelled, "cancelled"},
    {ErrorCode::kUnavailable, "unavailable"},
    {ErrorCode::kDataLoss, "data_loss"},
    {ErrorCode::kInfeasible, "infeasible"},
    {ErrorCode::kUnimplemented, "unimplemented"},
    {ErrorCode::kInternal, "internal"},
}};

ErrorCode code_from_errno(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return ErrorCode::kNotFound;
    case EEXIST:
      return ErrorCode::kAlreadyExists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return ErrorCode::kResourceExhausted;
    case EACCES:
    case EPERM:
    case EROFS:
    case EISDIR:
    case ENAMETOOLONG:
      return ErrorCode::kFailedPrecondition;
    default:
      return ErrorCode::kUnavailable;
  }
}

}  // namespace

std::string_view to_string(ErrorCode code) {
  for (const auto& [value, name] : kNames) {
    if (value == code) return name;
  }
  return "internal";
}

ErrorCode error_code_from_string(std::string_view name) {
  for (const auto& [value, text] : kNames) {
    if (text == name) return value;
  }
  return ErrorCode::kInternal;
}

Error error_from_errno(int error_number, std::string_view what) {
  const auto retry = (error_number == EINTR || error_number == EAGAIN || error_number == EIO)
                         ? Error::Retry::kMayHelp
                         : Error::Retry::kNever;
  return Error(code_from_errno(error_number),
               fmt::format("{}: {}", what, std::generic_category().message(error_number)), retry);
}

}  // namespace funcpipe
