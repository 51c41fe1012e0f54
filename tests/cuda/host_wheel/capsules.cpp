// Functions with the C signatures of CuPy's own, which ask an object of Python instead.  `capsules.py` writes a line for
// each: FUNCTION(result, symbol, parameters, failure, name, format, arguments).
//
// What is needed of Python is declared here, so that its headers are not.
#include <stddef.h>
#include <stdint.h>

struct _object;
typedef _object PyObject;
extern "C" {
PyObject *PyObject_CallMethod(PyObject *, const char *, const char *, ...);
PyObject *PyErr_Occurred(void);
long long PyLong_AsLongLong(PyObject *);
unsigned long long PyLong_AsUnsignedLongLongMask(PyObject *);
double PyFloat_AsDouble(PyObject *);
void Py_IncRef(PyObject *);
void Py_DecRef(PyObject *);
}

static PyObject *device;
// It is held for good: CuPy frees memory while Python ends.
extern "C" void set_device(PyObject *object) { Py_IncRef(device = object); }

static void read(PyObject *answer, intptr_t &result) { result = (intptr_t)PyLong_AsLongLong(answer); }
static void read(PyObject *answer, int &result) { result = (int)PyLong_AsLongLong(answer); }
static void read(PyObject *answer, unsigned &result) { result = (unsigned)PyLong_AsLongLong(answer); }
static void read(PyObject *answer, size_t &result) { result = (size_t)PyLong_AsUnsignedLongLongMask(answer); }
static void read(PyObject *answer, float &result) { result = (float)PyFloat_AsDouble(answer); }

// The answer as a result, or the result that tells of an exception.
template <class T> static T result_of(PyObject *answer, T failure) {
  if (!answer) return failure;
  T result;
  read(answer, result);
  Py_DecRef(answer);
  return PyErr_Occurred() ? failure : result;
}
template <> PyObject *result_of(PyObject *answer, PyObject *) { return answer; }

#define FUNCTION(result, symbol, parameters, failure, name, format, ...) \
  extern "C" result symbol parameters { \
    return result_of<result>(PyObject_CallMethod(device, name, format, ##__VA_ARGS__), failure); \
  }
