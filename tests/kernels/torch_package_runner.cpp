// Runs a package of AOTInductor in a process without Python.
//
//   torch_package_runner PACKAGE DEVICE INPUT... -- OUTPUT...
//
// A file of a tensor: int64 kind (0: float32, 1: int64), rank, dimensions; then the elements. Exits
// with 2, and the message on stderr, where the package throws; with 3 where Python is in the
// process.

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

static at::Tensor read_tensor(const char *path, const char *device) {
    std::ifstream file(path, std::ios::binary);
    file.exceptions(std::ios::failbit);
    int64_t head[2];
    file.read((char *)head, sizeof head);
    std::vector<int64_t> dims(head[1]);
    file.read((char *)dims.data(), (std::streamsize)(dims.size() * sizeof(int64_t)));
    at::Tensor tensor = at::empty(dims, head[0] ? at::kLong : at::kFloat);
    file.read((char *)tensor.data_ptr(), (std::streamsize)tensor.nbytes());
    return tensor.to(at::Device(std::string(device)));
}

static void write_tensor(const char *path, const at::Tensor &given) {
    at::Tensor tensor = given.detach().cpu().to(at::kFloat).contiguous();
    std::ofstream file(path, std::ios::binary);
    int64_t head[2] = {0, tensor.dim()};
    file.write((const char *)head, sizeof head);
    file.write((const char *)tensor.sizes().data(),
               (std::streamsize)(tensor.sizes().size() * sizeof(int64_t)));
    file.write((const char *)tensor.data_ptr(), (std::streamsize)tensor.nbytes());
}

// Whether a library of Python, or one of its functions, is in this process.
static bool has_python() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find("libpython") != std::string::npos ||
            line.find("libtorch_python") != std::string::npos)
            return true;
    return dlsym(RTLD_DEFAULT, "Py_IsInitialized") != nullptr;
}

int main(int count, char **words) {
    std::vector<at::Tensor> inputs;
    int place = 3;
    for (; place < count && std::strcmp(words[place], "--") != 0; place++)
        inputs.push_back(read_tensor(words[place], words[2]));
    try {
        torch::inductor::AOTIModelPackageLoader loader(words[1]);
        auto outputs = loader.run(inputs);
        for (size_t i = 0; i < outputs.size() && place + 1 + (int)i < count; i++)
            write_tensor(words[place + 1 + i], outputs[i]);
    } catch (const std::exception &problem) {
        std::cerr << problem.what() << std::endl;
        return 2;
    }
    return has_python() ? 3 : 0;
}
