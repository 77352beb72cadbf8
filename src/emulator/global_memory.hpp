// The arrays in global memory that a launch was given: what is outside of them does not exist.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fastgemm/problem.hpp"

namespace fastgemm::emulated {

class Array {
 public:
  enum class Use {
    read,
    write,  // every element once
    raise   // any element, as often as need be
  };

  Array(std::string name, const MatrixView& view, std::int64_t batch, std::int64_t rows,
        std::int64_t cols, Use use);

  const std::string& name() const { return name_; }
  DType dtype() const { return view_.dtype; }
  bool readable() const { return use_ == Use::read; }
  bool writable() const { return use_ != Use::read; }

  // Whether all of [address, address + bytes) are bytes of elements.
  bool contains(const void* address, std::int64_t bytes) const;
  // Whether some are, and the rest lies between elements.
  bool touches(const void* address, std::int64_t bytes) const;
  // Whether the last is, and those before it are or lie between elements.
  bool ends_in(const void* address, std::int64_t bytes) const;
  bool is_near(const void* address) const;  // within the range of the whole array
  std::string place(const void* address) const;

  // Notes that the elements there have been written; false where one had been before.
  bool mark_written(const void* address, std::int64_t bytes);
  // The first element that nothing was written to, as "[batch, row, col]"; empty: all were.
  std::string first_unwritten() const;

 private:
  struct Index {
    std::int64_t stride, extent;  // in bytes; extent above 1
    std::int64_t elements;        // steps in the row-major numbering of elements
  };
  // The row-major number of the element at `offset` bytes, and how many follow it directly; -1
  // where there is none.
  std::int64_t element_at(std::int64_t offset, std::int64_t& following) const;
  std::string index_text(std::int64_t element) const;

  std::string name_;
  MatrixView view_;
  std::int64_t batch_, rows_, cols_;
  Use use_;
  ByteRange range_;
  std::vector<Index> indices_;  // the widest stride first
  bool nested_ = true;          // every element has its own place, and gaps can be told
  std::unique_ptr<std::atomic<std::uint8_t>[]> written_;
};

// All arrays of a launch.
class GlobalMemory {
 public:
  void add(std::unique_ptr<Array> array) { arrays_.push_back(std::move(array)); }
  const std::vector<std::unique_ptr<Array>>& arrays() const { return arrays_; }

  // How much of an access has to be elements.
  enum class Need { all_to_write, all_to_read, some_to_read, last_to_read };

  // The array with these bytes, readable or writable as asked for; null where there is none.
  Array* find(const void* address, std::int64_t bytes, Need need) const;

  // Why find() found nothing, in words.
  std::string explain(const void* address, std::int64_t bytes, Need need) const;

 private:
  std::vector<std::unique_ptr<Array>> arrays_;
};

}  // namespace fastgemm::emulated
