<?php

declare(strict_types=1);

namespace Spindle\Cli;

use Spindle\Cli\Internal\DryRun;
use Spindle\Cli\Internal\EscapedLogger;
use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\GivenQueue;
use Spindle\Cli\Internal\Runner;
use Spindle\Cli\Internal\RunOptions;
use Spindle\Cli\Internal\UsageException;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Logger\ConsoleLogger;
use Symfony\Component\Console\Output\ConsoleOutputInterface;
use Symfony\Component\Console\Output\OutputInterface;

/** `spindle run`: runs a stream of commands concurrently, with the option names of GNU parallel and xargs. */
final class RunCommand extends Command
{
    private const HELP = <<<'HELP'
        Runs a command for each line of the input, so many at once:

          <info>find . -name '*.wav' | spindle run -j 8 --keep-order flac {} -o {.}.flac</info>
          <info>spindle run gzip -9 ::: *.log</info>                  arguments instead of input
          <info>spindle run 'gzip -c {} > {}.gz' ::: *.log</info>     a line for the shell
          <info>spindle run --joblog jobs.tsv < commands.txt</info>   each line is a command
          <info>spindle run --joblog jobs.tsv --resume < commands.txt</info>
          <info>spindle run -j 64 --retries 2 --halt soon,fail=10% < commands.txt</info>

        <comment>The command</comment>
          Options end at its first word, or at --.
          Several words are a program and its arguments, which no shell sees. A single
          word that holds white space or one of | & ; < > ( ) $ ` \ " ' * ? [ ] # ~ !
          is a line for the shell, and what is put into it is quoted, also where its
          place is in quotes. Without a command, each line of the input is a line for
          the shell. Commands read an empty standard input.
          Among several words, > | < && ; are refused, for no shell would see them.

        <comment>Replacement strings</comment>
          {}   the input         {.}  without its extension
          {/}  its base name     {/.} its base name without its extension
          {//} its folder        {#}  the job's number, from 1
          {%}  the number of its slot, from 1 to the number of jobs at once
          Where the command has none, {} is added to its end.

        <comment>Output</comment>
          A job's standard output, then its standard error, are printed when it is
          over, each whole: the output of two jobs is never mixed.

        <comment>Other machines</comment>
          With --queue, jobs run on the machines where spindle work serves it, as the
          agents' user and in their folder:

            <info>export SPINDLE_KEY_FILE=/etc/app/spindle.key</info>
            <info>export SPINDLE_BROKER=redis://:password@host</info>
            <info>spindle run --queue media -j 64 flac {} -o {.}.flac ::: /media/*.wav</info>

          -j is then how many are in the queue at once, 256 unless it is given. A job
          whose agent is lost runs again. The broker's address is that of --broker,
          else of --broker-file, else of SPINDLE_BROKER.

        <comment>Signals</comment>
          USR1 lists the running jobs on standard error. INT (Ctrl-C) and TERM are
          below. A signal that was ignored at the start stays ignored.

        <comment>Exit status</comment>
          0      all jobs succeeded, or as many as --halt success=... asks for
          1-100  so many jobs failed
          101    more jobs failed
          130    interrupted by Ctrl-C: once, what runs may finish; twice, it is ended
          141    the reader of standard output went away
          143    ended by SIGTERM
          253    the broker refuses, or is set up so that it would lose jobs
          254    Spindle itself failed, could not write an output or the job log, or
                 can't reach the broker
          255    bad options, or input that can't be read
        HELP;

    public function __construct()
    {
        parent::__construct('run');
    }

    protected function configure(): void
    {
        [$value, $flag] = [InputOption::VALUE_REQUIRED, InputOption::VALUE_NONE];
        GivenQueue::addOptions($this->setDescription('Runs a stream of commands, so many at once')
            ->setHelp(self::HELP)
            ->addUsage('[options] [--] [command template] < input')
            ->addUsage('[options] [--] [command template] ::: [argument...]')
            ->addArgument(
                GivenOptions::WORDS,
                InputArgument::IS_ARRAY,
                'The command, and ::: with an argument for each',
            )
            ->addOption(
                'jobs',
                'j',
                $value,
                "Jobs at once: a number, 0 for as many as\npossible, a percentage of the usable CPUs such\nas 200%, or a file with one of these, read\nagain while jobs run (also -P) [default: 100%]",
            )
            ->addOption('arg-file', 'a', $value, "Read the input from this file, - for standard\ninput")
            ->addOption('null', null, $flag, 'Lines of input end with NUL (also -0)')
            ->addOption('keep-order', 'k', $flag, 'Print outputs in the order of the input')
            ->addOption('tag', null, $flag, "Begin each line of output with the input and a\ntab")
            ->addOption(
                'timeout',
                null,
                $value,
                "End a job after so many seconds (90, 1.5, 10m,\n2h), or after a percentage of the median\nruntime such as 200%",
            )
            ->addOption('retries', null, $value, 'Try a failed job so many times more at most')
            ->addOption(
                'halt',
                null,
                $value,
                "never, or when to stop: soon (what runs may\nfinish) or now, then fail=N, fail=N%,\nsuccess=N, success=N% or done=N, as in\nsoon,fail=1",
            )
            ->addOption('delay', null, $value, "Leave so many seconds between two starts,\nfurther attempts included")
            ->addOption(
                'joblog',
                null,
                $value,
                "Write a line for each finished job to this\nfile, in GNU parallel's format",
            )
            ->addOption('resume', null, $flag, 'Leave out the jobs that the job log has')
            ->addOption('resume-failed', null, $flag, "Leave out the jobs that succeeded by the job\nlog")
            ->addOption('results', null, $value, "Keep the outputs as files in this folder,\n"
                . 'which is new, empty or of an earlier run')
            ->addOption('dry-run', null, $flag, 'Print the commands instead of running them')
            ->addOption(
                'progress',
                null,
                $value,
                "Show the progress on standard error: bar,\nplain, json or none [default: none]",
            )
            ->addOption(
                'jsonl',
                null,
                $flag,
                'Read lines {"id":...,"cmd":...}, write lines'
                    . "\n"
                    . '{"id":...,"status":...,"stdout":...,'
                    . "\n"
                    . '"stderr":...}',
            )
            ->addOption('strict', null, $flag, "Start no more jobs after a line of input that\nis no command")
            ->addOption('queue', null, $value, 'Run on the machines that serve this queue'));
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        // Only the option is an error, not the variable SHELL_VERBOSITY.
        if ($output->isVerbose() && !$output->isDebug() && $input->hasParameterOption(['-v', '--verbose'], true)) {
            throw new UsageException(
                'option -v: spindle run does not print commands as they run; --dry-run prints them instead of running'
                . ' them, --joblog FILE lists them, and -vvv logs each step',
            );
        }
        $options = RunOptions::of($input);

        return $options->dryRun
            ? (new DryRun($options))->run()
            : (new Runner($options, self::logger($output)))->run();
    }

    private static function logger(OutputInterface $output): ?EscapedLogger
    {
        return $output->isDebug()
            ? new EscapedLogger(new ConsoleLogger(
                $output instanceof ConsoleOutputInterface ? $output->getErrorOutput() : $output,
            ))
            : null;
    }
}
