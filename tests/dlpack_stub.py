"""A DLPack producer made of ctypes, which can break every rule of the protocol."""

import ctypes

CPU, CUDA, CUDA_HOST, MANAGED = 1, 2, 3, 13
FLOAT, BFLOAT = 2, 4


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", Deleter)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Producer:
    """`calls` holds the keywords of each __dlpack__ call, `deleted` counts the deleter's calls."""

    def __init__(
        self,
        shape=(2, 2),
        *,
        device=(CUDA, 0),
        dtype=(FLOAT, 16, 1),
        strides=None,
        data=0x10000,
        byte_offset=0,
        version=(1, 0),
        flags=0,
        exported_device=None,
    ):
        self.shape, self.device, self.dtype, self.version = shape, device, dtype, version
        self.strides, self.data, self.byte_offset, self.flags = strides, data, byte_offset, flags
        self.exported_device = exported_device or device
        self.calls, self.deleted = [], 0
        self.kept = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        self.calls.append(keywords)
        return self.export()

    def export(self):
        """A capsule of the version given, "dltensor" where that is None."""
        extents = ctypes.c_int64 * len(self.shape)
        shape = extents(*self.shape)
        strides = extents(*self.strides) if self.strides is not None else None
        deleter = Deleter(self.delete)
        tensor = Tensor(
            self.data,
            Device(*self.exported_device),
            len(self.shape),
            DataType(*self.dtype),
            shape,
            strides,
            self.byte_offset,
        )
        if self.version is None:
            managed, name = Managed(tensor, None, deleter), b"dltensor"
        else:
            managed = Versioned(*self.version, None, deleter, self.flags, tensor)
            name = b"dltensor_versioned"
        self.kept.append((managed, shape, strides, deleter))
        self.capsule = new_capsule(ctypes.addressof(managed), name, None)
        return self.capsule

    def delete(self, _):
        self.deleted += 1


class Old(Producer):
    """As before max_version was part of the protocol."""

    version = None

    def __init__(self, *args, **keywords):
        super().__init__(*args, version=None, **keywords)

    def __dlpack__(self, stream=None):
        self.calls.append({"stream": stream})
        return self.export()


def host(array, code=FLOAT, **keywords):
    """A producer over a NumPy array's memory; `array` must outlive it."""
    keywords.setdefault("device", (CPU, 0))
    return Producer(
        array.shape,
        data=array.ctypes.data,
        dtype=(code, 8 * array.itemsize, 1),
        strides=[s // array.itemsize for s in array.strides],
        **keywords,
    )
