// cc main.c out/numbers.c -Iout -o main -lpthread -lm -ldl

#include <stdio.h>
#include <stdlib.h>

#include "numbers.h"

enum { ROWS = 64, COLUMNS = 1000, COUNT = ROWS * COLUMNS };

int main(void) {
    float *x = malloc(COUNT * sizeof *x), *out = malloc(COUNT * sizeof *out);
    if (!x || !out)
        return 1;
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i % 10);

    // a null queue is the bundle's thread pool
    int status = numbers_add(NULL, x, x, out, COUNT);
    if (!status)
        status = numbers_softmax(NULL, ROWS, 1, 1, x, out, COLUMNS);
    if (status) {
        fprintf(stderr, "error %d: %s\n", status, numbers_error());
        return 1;
    }
    double sum = 0;
    for (int i = 0; i < COLUMNS; i++)
        sum += out[i];
    printf("a row of softmax adds up to %.4f\n", sum);

    // one of the errors: there is no variant for rows of this length
    status = numbers_softmax(NULL, ROWS, 1, 1, x, out, 2000);
    printf("error %d: %s\n", status, numbers_error());
    free(x);
    free(out);
    return 0;
}
