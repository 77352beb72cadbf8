// Compares python/xla_declarations.hpp with jaxlib's own header; compiling this file is the test.
#include <xla/ffi/api/c_api.h>

#include <cstddef>
#include <type_traits>

#include "xla_declarations.hpp"

namespace {

namespace ours = fastgemm::xla;

using TheirExtension = std::remove_pointer_t<decltype(XLA_FFI_CallFrame::extension_start)>;

#define SAME_MEMBER(structure, member, theirs, their_member)                           \
  static_assert(offsetof(ours::structure, member) == offsetof(theirs, their_member) && \
                    sizeof(ours::structure::member) == sizeof(theirs::their_member),   \
                #theirs "::" #their_member);
#define SAME_VALUE(value, theirs) \
  static_assert(static_cast<int>(ours::value) == static_cast<int>(theirs), #theirs);

static_assert(ours::major_version == XLA_FFI_API_MAJOR);
static_assert(ours::command_buffer_compatible == XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE);
SAME_VALUE(ExtensionType::metadata, XLA_FFI_Extension_Metadata)
SAME_VALUE(ErrorCode::unknown, XLA_FFI_Error_Code_UNKNOWN)
SAME_VALUE(ErrorCode::invalid_argument, XLA_FFI_Error_Code_INVALID_ARGUMENT)
SAME_VALUE(ErrorCode::failed_precondition, XLA_FFI_Error_Code_FAILED_PRECONDITION)
SAME_VALUE(DataType::f16, XLA_FFI_DataType_F16)
SAME_VALUE(DataType::f32, XLA_FFI_DataType_F32)
SAME_VALUE(DataType::bf16, XLA_FFI_DataType_BF16)
SAME_VALUE(DataType::s32, XLA_FFI_DataType_S32)
SAME_VALUE(DataType::s64, XLA_FFI_DataType_S64)
SAME_VALUE(DataType::pred, XLA_FFI_DataType_PRED)
SAME_VALUE(AttributeType::array, XLA_FFI_AttrType_ARRAY)
SAME_VALUE(AttributeType::dictionary, XLA_FFI_AttrType_DICTIONARY)
SAME_VALUE(AttributeType::scalar, XLA_FFI_AttrType_SCALAR)
SAME_VALUE(AttributeType::string, XLA_FFI_AttrType_STRING)

SAME_MEMBER(Extension, size, TheirExtension, struct_size)
SAME_MEMBER(Extension, type, TheirExtension, type)
SAME_MEMBER(Extension, next, TheirExtension, next)
SAME_MEMBER(ApiVersion, size, XLA_FFI_Api_Version, struct_size)
SAME_MEMBER(ApiVersion, major, XLA_FFI_Api_Version, major_version)
SAME_MEMBER(ApiVersion, minor, XLA_FFI_Api_Version, minor_version)
SAME_MEMBER(ErrorCreateArgs, size, XLA_FFI_Error_Create_Args, struct_size)
SAME_MEMBER(ErrorCreateArgs, message, XLA_FFI_Error_Create_Args, message)
SAME_MEMBER(ErrorCreateArgs, code, XLA_FFI_Error_Create_Args, errc)
SAME_MEMBER(ErrorDestroyArgs, size, XLA_FFI_Error_Destroy_Args, struct_size)
SAME_MEMBER(ErrorDestroyArgs, error, XLA_FFI_Error_Destroy_Args, error)
SAME_MEMBER(StreamGetArgs, size, XLA_FFI_Stream_Get_Args, struct_size)
SAME_MEMBER(StreamGetArgs, context, XLA_FFI_Stream_Get_Args, ctx)
SAME_MEMBER(StreamGetArgs, stream, XLA_FFI_Stream_Get_Args, stream)
SAME_MEMBER(Api, version, XLA_FFI_Api, api_version)
SAME_MEMBER(Api, error_create, XLA_FFI_Api, XLA_FFI_Error_Create)
SAME_MEMBER(Api, error_destroy, XLA_FFI_Api, XLA_FFI_Error_Destroy)
SAME_MEMBER(Api, stream_get, XLA_FFI_Api, XLA_FFI_Stream_Get)
SAME_MEMBER(Buffer, size, XLA_FFI_Buffer, struct_size)
SAME_MEMBER(Buffer, type, XLA_FFI_Buffer, dtype)
SAME_MEMBER(Buffer, data, XLA_FFI_Buffer, data)
SAME_MEMBER(Buffer, rank, XLA_FFI_Buffer, rank)
SAME_MEMBER(Buffer, extents, XLA_FFI_Buffer, dims)
SAME_MEMBER(ByteSpan, data, XLA_FFI_ByteSpan, ptr)
SAME_MEMBER(ByteSpan, size, XLA_FFI_ByteSpan, len)
SAME_MEMBER(Scalar, type, XLA_FFI_Scalar, dtype)
SAME_MEMBER(Scalar, value, XLA_FFI_Scalar, value)
SAME_MEMBER(Buffers, count, XLA_FFI_Args, size)
SAME_MEMBER(Buffers, types, XLA_FFI_Args, types)
SAME_MEMBER(Buffers, buffers, XLA_FFI_Args, args)
SAME_MEMBER(Buffers, count, XLA_FFI_Rets, size)
SAME_MEMBER(Buffers, types, XLA_FFI_Rets, types)
SAME_MEMBER(Buffers, buffers, XLA_FFI_Rets, rets)
SAME_MEMBER(Attributes, count, XLA_FFI_Attrs, size)
SAME_MEMBER(Attributes, types, XLA_FFI_Attrs, types)
SAME_MEMBER(Attributes, names, XLA_FFI_Attrs, names)
SAME_MEMBER(Attributes, values, XLA_FFI_Attrs, attrs)
SAME_MEMBER(CallFrame, extensions, XLA_FFI_CallFrame, extension_start)
SAME_MEMBER(CallFrame, api, XLA_FFI_CallFrame, api)
SAME_MEMBER(CallFrame, context, XLA_FFI_CallFrame, ctx)
SAME_MEMBER(CallFrame, stage, XLA_FFI_CallFrame, stage)
SAME_MEMBER(CallFrame, arguments, XLA_FFI_CallFrame, args)
SAME_MEMBER(CallFrame, results, XLA_FFI_CallFrame, rets)
SAME_MEMBER(CallFrame, attributes, XLA_FFI_CallFrame, attrs)
SAME_MEMBER(Metadata, version, XLA_FFI_Metadata, api_version)
SAME_MEMBER(Metadata, traits, XLA_FFI_Metadata, traits)
SAME_MEMBER(MetadataExtension, metadata, XLA_FFI_Metadata_Extension, metadata)

}  // namespace
