#!/bin/sh
# What became of a Slurm job, in the words of Snakemake: success, failed or running.
answer=$(squeue --noheader --states=all --format=%T --jobs="$1" 2>&1 | head -n 1)
case $answer in
    *"Invalid job id"*)
        # squeue forgets a job MinJobAge seconds after its end; accounts, where they are kept, do not
        answer=$(sacct --noheader --allocations --parsable2 --format=State --jobs="$1" 2>/dev/null | head -n 1)
        [ -n "$answer" ] || answer=FORGOTTEN
        ;;
esac
case $answer in
    COMPLETED) echo success ;;
    BOOT_FAIL | CANCELLED* | DEADLINE | FAILED | FORGOTTEN | NODE_FAIL | OUT_OF_MEMORY | PREEMPTED | REVOKED | TIMEOUT)
        echo failed
        ;;
    # Also where Slurm does not answer just now: it is asked again
    *) echo running ;;
esac
