//! Kernels of the bundle `BUNDLE`. Made by Tilewright; do not edit.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::fs::File;
use std::io::Write;
use std::mem::transmute;
use std::os::fd::{AsRawFd, FromRawFd};

/// The version of `Queue` and of the functions of the library.
pub const ABI: u32 = 1;

static LIBRARY: &[u8] = include_bytes!("libBUNDLE.so");

#[link(name = "dl")]
extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn memfd_create(name: *const c_char, flags: u32) -> c_int;
}

/// A part of a launch on a CPU: runs part `index` of `job`.
pub type Part = unsafe extern "C" fn(job: *mut c_void, index: i32);

/// Calls `part(job, i)` for each i from 0 to threads - 1, and returns when all calls have.
pub type Parallel = unsafe extern "C" fn(*mut c_void, Part, *mut c_void, i32);

/// Where a launch runs.
#[repr(C)]
pub struct Queue {
    abi: u32,
    kind: i32,
    /// CPU: 0: the bundle's thread pool; 1: this thread; more: `parallel`.
    pub threads: i32,
    /// CUDA: number of the device; -1: that of the current context, else 0.
    pub device: i32,
    /// CUDA: a CUstream of the device.
    pub stream: *mut c_void,
    /// CPU: runs parts on threads of the caller.
    pub parallel: Option<Parallel>,
    /// The first argument of `parallel`.
    pub context: *mut c_void,
}

impl Queue {
    /// The thread pool of the bundle.
    pub fn cpu() -> Queue {
        let null = std::ptr::null_mut();
        Queue { abi: ABI, kind: 0, threads: 0, device: -1, stream: null, parallel: None, context: null }
    }

    /// A stream of CUDA.
    pub fn cuda(stream: *mut c_void) -> Queue {
        Queue { kind: 1, stream, ..Queue::cpu() }
    }
}

/// Why a function failed: a code of the header's, and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub code: i32,
    pub text: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(formatter, "{} (code {})", self.text, self.code)
    }
}

impl std::error::Error for Failure {}

/// The loaded bundle; it stays loaded.
pub struct Bundle {
    library: *mut c_void,
}

// The library may be called by any thread.
unsafe impl Send for Bundle {}
unsafe impl Sync for Bundle {}

impl Bundle {
    /// Loads the library from memory.
    pub fn new() -> std::io::Result<Bundle> {
        const NOW: c_int = 2;
        const CLOSE_ON_EXEC: u32 = 1;
        let number = unsafe { memfd_create(c"BUNDLE".as_ptr(), CLOSE_ON_EXEC) };
        if number < 0 {
            return Err(std::io::Error::last_os_error());
        }
        let mut file = unsafe { File::from_raw_fd(number) };
        file.write_all(LIBRARY)?;
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let library = unsafe { dlopen(path.as_ptr(), NOW) };
        if library.is_null() {
            return Err(std::io::Error::other("the library of BUNDLE is not for this system"));
        }
        Ok(Bundle { library })
    }

    /// Loads all kernels for the device of a queue, so that no launch has to.
    pub fn load(&self, queue: &Queue) -> Result<(), Failure> {
        type Function = unsafe extern "C" fn(*const Queue) -> c_int;
        unsafe {
            let function: Function = transmute(self.find(c"BUNDLE_load"));
            self.check(function(queue))
        }
    }

    // METHODS
    fn find(&self, name: &CStr) -> *mut c_void {
        let function = unsafe { dlsym(self.library, name.as_ptr()) };
        assert!(!function.is_null(), "the library has all functions of this file");
        function
    }

    fn check(&self, code: c_int) -> Result<(), Failure> {
        if code == 0 {
            return Ok(());
        }
        type Function = unsafe extern "C" fn() -> *const c_char;
        let text = unsafe {
            let error: Function = transmute(self.find(c"BUNDLE_error"));
            CStr::from_ptr(error()).to_string_lossy().into_owned()
        };
        Err(Failure { code, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_has_the_version_of_this_file() {
        type Function = unsafe extern "C" fn() -> u32;
        let bundle = Bundle::new().unwrap();
        let abi: Function = unsafe { transmute(bundle.find(c"BUNDLE_abi")) };
        assert_eq!(unsafe { abi() }, ABI);
    }

    #[test]
    fn another_version_is_a_failure() {
        let queue = Queue { abi: 7, ..Queue::cpu() };
        let failure = Bundle::new().unwrap().load(&queue).unwrap_err();
        assert_eq!(failure.code, 1);
        assert!(failure.text.contains("version 7"));
    }
}
