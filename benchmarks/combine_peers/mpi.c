/* MPI_Allreduce in place over zeros: mpi BYTES ROUNDS; prints nanoseconds of ROUNDS, after at most eight not
 * counted. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    int rank = 0;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int words = atoi(arguments[1]) / (int)sizeof(double);
    int rounds = atoi(arguments[2]);
    double *vector = calloc((size_t)words, sizeof *vector);
    double begun = 0;
    for (int round = -(rounds < 8 ? rounds : 8); round < rounds; round++) {
        if (round == 0)
            begun = MPI_Wtime();
        MPI_Allreduce(MPI_IN_PLACE, vector, words, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%.0f\n", (MPI_Wtime() - begun) * 1e9);
    MPI_Finalize();
    return 0;
}
