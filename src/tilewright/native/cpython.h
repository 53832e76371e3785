// The functions of CPython's C API that the C sources call. A PyObject * that a function returns is
// a new reference, or null with an error set, unless a comment says otherwise.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct PyObject PyObject; // its layout differs between builds of CPython

extern PyObject *PyExc_TypeError;

extern void *PyLong_AsVoidPtr(PyObject *object);
extern int64_t PyLong_AsLongLong(PyObject *object);
extern int64_t PyLong_AsLongLongAndOverflow(PyObject *object, int *overflow);
extern uint64_t PyLong_AsUnsignedLongLong(PyObject *object);
extern PyObject *PyLong_FromLongLong(int64_t value);
extern PyObject *PyLong_FromUnsignedLongLong(uint64_t value);
extern double PyFloat_AsDouble(PyObject *object);
extern PyObject *PyFloat_FromDouble(double value);
extern const char *PyBytes_AsString(PyObject *object); // the bytes themselves
extern PyObject *PyBytes_FromStringAndSize(const void *bytes, int64_t size);

extern int64_t PyTuple_Size(PyObject *tuple);
extern PyObject *PyTuple_GetItem(PyObject *tuple, int64_t position); // borrowed
extern int64_t PyList_Size(PyObject *list);
extern int64_t PyDict_Size(PyObject *dict);
extern PyObject *PyDict_Copy(PyObject *dict);
extern PyObject *PyDict_GetItemWithError(PyObject *dict, PyObject *key); // borrowed
extern int PyDict_SetItem(PyObject *dict, PyObject *key, PyObject *value);
extern int64_t PySequence_Size(PyObject *sequence);
extern PyObject *PySequence_GetItem(PyObject *sequence, int64_t position);

extern PyObject *PyFunction_GetCode(PyObject *function);    // borrowed
extern PyObject *PyFunction_GetGlobals(PyObject *function); // borrowed
extern PyObject *PyFunction_GetClosure(PyObject *function); // borrowed: tuple, or null
extern PyObject *PyCell_Get(PyObject *cell);                // null, without an error: it is empty

extern PyObject *PyErr_Occurred(void); // borrowed
extern void PyErr_Clear(void);
extern void PyErr_SetString(PyObject *type, const char *text);
extern void PyErr_Fetch(PyObject **type, PyObject **value, PyObject **traceback);
extern void PyErr_NormalizeException(PyObject **type, PyObject **value, PyObject **traceback);
extern void PyErr_Restore(PyObject *type, PyObject *value, PyObject *traceback);
extern int PyErr_CheckSignals(void);
extern int PyException_SetTraceback(PyObject *error, PyObject *traceback);
extern PyObject *PyException_GetTraceback(PyObject *error);

extern int PyCallable_Check(PyObject *object);
extern int PyObject_IsTrue(PyObject *object);
extern PyObject *PyObject_GetAttr(PyObject *object, PyObject *name);
extern PyObject *PyObject_Vectorcall(PyObject *function, PyObject *const *args, size_t count,
                                     PyObject *names);
extern PyObject *PyObject_VectorcallMethod(PyObject *name, PyObject *const *args, size_t count,
                                           PyObject *names);
extern void Py_IncRef(PyObject *object);
extern void Py_DecRef(PyObject *object); // or null

extern int PyGILState_Ensure(void);
extern void PyGILState_Release(int state);
extern void *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(void *state);

// sizeof(PyObject), whose last field is the type in every build; defined when a program is loaded.
extern const int64_t object_bytes;

static inline PyObject *type_of(PyObject *object) { // borrowed
    return *(PyObject **)((char *)object + object_bytes - sizeof(PyObject *));
}
