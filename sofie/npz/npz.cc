#include "sofie/npz/npz.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace sofie {
namespace npz_internal {

using Bytes = std::span<const std::byte>;

[[noreturn]] void Fail(const std::string& name, const std::string& message) {
  throw std::runtime_error(name + ": " + message);
}

std::vector<std::byte> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) Fail(path, "the file can't be opened.");
  std::vector<std::byte> bytes(static_cast<size_t>(file.tellg()));
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()))) {
    Fail(path, "the file can't be read.");
  }
  return bytes;
}

// A little-endian number; both formats have no others. Throws beyond the end.
template <class T>
T Number(Bytes bytes, size_t offset, const std::string& name) {
  if (bytes.size() < sizeof(T) || offset > bytes.size() - sizeof(T)) {
    Fail(name, "the file is truncated.");
  }
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

Bytes Part(Bytes bytes, uint64_t offset, uint64_t size, const std::string& name) {
  if (offset > bytes.size() || size > bytes.size() - offset) Fail(name, "the file is truncated.");
  return bytes.subspan(offset, size);
}

std::string_view Text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What follows 'key': in the header's Python dictionary.
std::string_view Value(std::string_view header, std::string_view key, const std::string& name) {
  const size_t at = header.find("'" + std::string(key) + "':");
  if (at == std::string_view::npos) {
    Fail(name, "the header of the array has no '" + std::string(key) + "'.");
  }
  std::string_view value = header.substr(at + key.size() + 3);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

std::string Dtype(std::string_view header, const std::string& name) {
  const std::string_view value = Value(header, "descr", name);
  const size_t end = value.find('\'', 1);
  const std::string descr(value.substr(0, end == std::string_view::npos ? value.size() : end + 1));
  // '<f4': byte order, kind, bytes; '|' where a byte order makes no difference.
  const bool plain = descr.size() == 5 && std::string_view("<|").find(descr[1]) < 2 &&
                     std::string_view("fiub").find(descr[2]) < 4 &&
                     std::string_view("1248").find(descr[3]) < 4;
  if (!plain) {
    Fail(name, "arrays of dtype " + descr +
                   " can't be read, only little-endian numbers and booleans; convert with astype.");
  }
  return descr.substr(2, 2);
}

std::vector<int64_t> Extents(std::string_view header, const std::string& name) {
  std::string_view value = Value(header, "shape", name);
  const size_t end = value.find(')');
  if (!value.starts_with('(') || end == std::string_view::npos) {
    Fail(name, "the header of the array has no shape.");
  }
  std::vector<int64_t> shape;
  bool in_number = false;
  for (const char character : value.substr(1, end - 1)) {
    if (std::isdigit(static_cast<unsigned char>(character)) == 0) {
      in_number = false;
      continue;
    }
    if (!in_number) shape.push_back(0);
    in_number = true;
    const int digit = character - '0';
    if (shape.back() > (std::numeric_limits<int64_t>::max() - digit) / 10) {
      Fail(name, "the shape of the array is too large.");
    }
    shape.back() = shape.back() * 10 + digit;
  }
  return shape;
}

// Bytes of the elements. Throws if the number has no 64 bits.
uint64_t DataBytes(const NpyArray& array, const std::string& name) {
  uint64_t bytes = static_cast<uint64_t>(array.dtype[1] - '0');
  for (const int64_t extent : array.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes)) {
      Fail(name, "the shape of the array is too large.");
    }
  }
  return bytes;
}

// ZIP archives (APPNOTE.TXT 6.3.10): the directory at the end says where each member begins.
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEntrySignature = 0x02014b50;
constexpr uint32_t kMemberSignature = 0x04034b50;
constexpr size_t kEndBytes = 22;
constexpr size_t kEntryBytes = 46;
constexpr size_t kMemberBytes = 30;
constexpr uint32_t kInZip64 = 0xffffffff;
constexpr uint16_t kZip64Extra = 0x0001;

size_t FindEnd(Bytes file, const std::string& path) {
  // A comment of up to 65535 bytes may follow.
  for (size_t offset = file.size() - std::min(file.size(), kEndBytes);; --offset) {
    if (Number<uint32_t>(file, offset, path) == kEndSignature) return offset;
    if (offset == 0 || file.size() - offset > kEndBytes + 0xffff) break;
  }
  Fail(path, "this is no .npz file.");
}

struct Entry {
  std::string member;
  uint64_t bytes;
  uint64_t offset;  // of the member's header
  size_t entry_bytes;
};

Entry ReadEntry(Bytes file, size_t at, const std::string& path) {
  if (Number<uint32_t>(file, at, path) != kEntrySignature) Fail(path, "the archive is damaged.");
  const auto flags = Number<uint16_t>(file, at + 8, path);
  const auto method = Number<uint16_t>(file, at + 10, path);
  const auto packed_bytes = Number<uint32_t>(file, at + 20, path);
  const auto bytes = Number<uint32_t>(file, at + 24, path);
  const auto name_bytes = Number<uint16_t>(file, at + 28, path);
  const auto extra_bytes = Number<uint16_t>(file, at + 30, path);
  const auto comment_bytes = Number<uint16_t>(file, at + 32, path);
  const auto offset = Number<uint32_t>(file, at + 42, path);
  Entry entry{std::string(Text(Part(file, at + kEntryBytes, name_bytes, path))), bytes, offset,
              kEntryBytes + name_bytes + extra_bytes + comment_bytes};
  if (method != 0) {
    Fail(path, "'" + entry.member + "' is compressed; write the file with numpy.savez.");
  }
  if ((flags & 1) != 0) Fail(path, "'" + entry.member + "' is encrypted.");
  // The 64-bit values that did not fit above, in this order.
  const Bytes extras = Part(file, at + kEntryBytes + name_bytes, extra_bytes, path);
  for (size_t begin = 0; begin + 4 <= extras.size();) {
    const auto kind = Number<uint16_t>(extras, begin, path);
    const auto size = Number<uint16_t>(extras, begin + 2, path);
    if (kind == kZip64Extra) {
      const Bytes extra = Part(extras, begin + 4, size, path);
      size_t next = 0;
      const auto take = [&](uint32_t shortened, uint64_t& value) {
        if (shortened != kInZip64) return;
        value = Number<uint64_t>(extra, next, path);
        next += sizeof(uint64_t);
      };
      uint64_t packed = 0;
      take(bytes, entry.bytes);
      take(packed_bytes, packed);
      take(offset, entry.offset);
    }
    begin += 4 + size;
  }
  return entry;
}

Bytes MemberData(Bytes file, const Entry& entry, const std::string& path) {
  if (Number<uint32_t>(file, entry.offset, path) != kMemberSignature) {
    Fail(path, "the archive is damaged.");
  }
  const auto name_bytes = Number<uint16_t>(file, entry.offset + 26, path);
  const auto extra_bytes = Number<uint16_t>(file, entry.offset + 28, path);
  return Part(file, entry.offset + kMemberBytes + name_bytes + extra_bytes, entry.bytes, path);
}

}  // namespace npz_internal

int64_t NpyArray::elements() const {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

NpyArray ParseNpy(std::span<const std::byte> bytes, const std::string& name) {
  using namespace npz_internal;  // NOLINT
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (!Text(bytes).starts_with(kMagic)) Fail(name, "this is no .npy file.");
  const auto major = Number<uint8_t>(bytes, kMagic.size(), name);
  const size_t length_at = kMagic.size() + 2;
  const size_t length_bytes = major == 1 ? sizeof(uint16_t) : sizeof(uint32_t);
  const uint64_t header_bytes = major == 1 ? Number<uint16_t>(bytes, length_at, name)
                                           : Number<uint32_t>(bytes, length_at, name);
  const size_t header_at = length_at + length_bytes;
  const std::string_view header = Text(Part(bytes, header_at, header_bytes, name));
  NpyArray array{Dtype(header, name), Extents(header, name), {}};
  if (!Value(header, "fortran_order", name).starts_with("False")) {
    Fail(name, "the array is in Fortran order; convert it with numpy.ascontiguousarray.");
  }
  const Bytes data = Part(bytes, header_at + header_bytes, DataBytes(array, name), name);
  array.data.assign(data.begin(), data.end());
  return array;
}

NpyArray ReadNpy(const std::string& path) { return ParseNpy(npz_internal::ReadFile(path), path); }

std::map<std::string, NpyArray> ReadNpz(const std::string& path) {
  using namespace npz_internal;  // NOLINT
  const std::vector<std::byte> file = ReadFile(path);
  const size_t end = FindEnd(file, path);
  // numpy.savez needs the 64-bit form of this record for archives beyond 4 GiB only.
  const auto count = Number<uint16_t>(file, end + 10, path);
  const auto directory = Number<uint32_t>(file, end + 16, path);
  if (directory == kInZip64) Fail(path, "archives beyond 4 GiB can't be read.");
  std::map<std::string, NpyArray> arrays;
  size_t at = directory;
  for (int i = 0; i < count; ++i) {
    const Entry entry = ReadEntry(file, at, path);
    at += entry.entry_bytes;
    std::string name = entry.member;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    arrays[name] = ParseNpy(MemberData(file, entry, path), path + ", '" + name + "'");
  }
  return arrays;
}

}  // namespace sofie
