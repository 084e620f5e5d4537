<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\Run\KnownOptions\OptionTable;
use Spindle\Cli\Internal\UsageException;
use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Logger\ConsoleLogger;
use Symfony\Component\Console\Output\ConsoleOutputInterface;
use Symfony\Component\Console\Output\OutputInterface;

/** `spindle run`: runs a stream of commands concurrently, with the option names of GNU parallel and xargs. */
#[AsCommand('run', 'Runs a command for each line of input, several at once')]
final class RunCommand extends Command
{
    private const HELP = <<<'HELP'
        Runs a command for each line of input, several at once:

          <info>find . -name '*.wav' | spindle run -j 8 flac {} -o {.}.flac</info>
          <info>spindle run gzip -9 ::: *.log</info>

        <comment>Command and input</comment>
          Options end at the first word of the command, or at --.
          Input lines come from standard input, from --arg-file, or from the arguments
          after :::.

          several words   A program and its arguments; no shell reads them. Words such
                          as > | < && and ; are refused.
          one word        A line for the shell if it contains white space or one of
                          | & ; < > ( ) $ ` \ " ' * ? [ ] # ~ !, else a program.
                          Inserted values are quoted automatically.
          no command      Each input line is a line for the shell.

          Each command reads an empty standard input; with --pipe, a block of input.

        <comment>Replacement strings</comment>
          {}    the input line        {.}   {} without its extension
          {/}   its base name         {/.}  its base name without extension
          {//}  its folder            {#}   the number of the job, from 1
          {%}   the number of the slot, from 1 up to the number of jobs at once
          Without any of them, {} is added to the end of the command.

        <comment>Output</comment>
          When a job has finished, its standard output and then its standard error
          are printed, each in one piece. So outputs of two jobs are not mixed.
          --line-buffer prints each line when it is complete. With --ungroup, the
          outputs of jobs can mix.

        <comment>Other machines</comment>
          With --queue, jobs run on the machines where spindle work serves that queue,
          as the user of that process and in its folder. The queue is stored in the
          engine, a Redis or Valkey server. SPINDLE_KEY_FILE names the file with the
          signing keys.
          -j limits the jobs in the queue, waiting or running. The default is 256.
          If spindle work or its machine fails, its jobs run again on another machine.

        <comment>Signals</comment>
          INT        Ctrl-C: start no more jobs and let running ones finish. A second
                     one ends the running jobs.
          TERM       End the running jobs.
          USR1       List the running jobs on standard error.
          A signal that was ignored when spindle run started stays ignored.

        <comment>Exit status</comment>
          0          All jobs succeeded, or --halt success=... was reached.
          1-100      The number of failed jobs; their percentage with --halt ...=N%.
          101        More than 100 jobs failed.
          any        With --halt ...,fail=1 or done=1 (or a percentage that equals
                     one job): the status of the job that stopped the run.
          130        Interrupted by Ctrl-C (INT).
          141        The reader of standard output closed it.
          143        Ended by TERM.
          253        The engine refused a request, or has settings that could lose
                     jobs.
          254        Spindle failed, or could not write an output or the job log, or
                     could not reach the engine.
          255        An option is invalid, or the input could not be read.

        <comment>Examples</comment>
          Take arguments instead of input; run a shell line for each:
            <info>spindle run 'gzip -c {} > {}.gz' ::: *.log</info>
          Run commands from a file; log them; continue after an interruption:
            <info>spindle run --joblog jobs.tsv < commands.txt</info>
            <info>spindle run --joblog jobs.tsv --resume < commands.txt</info>
          Try jobs up to three times, and stop when 10% of all jobs have failed:
            <info>spindle run -j 64 --retries 3 --halt soon,fail=10% < commands.txt</info>
          Run on other machines:
            <info>export SPINDLE_KEY_FILE=/etc/app/spindle.key</info>
            <info>export SPINDLE_BROKER=redis://:password@host</info>
            <info>spindle run --queue media flac {} -o {.}.flac ::: /media/*.wav</info>
        HELP;

    private const LISTS = ['arg-file', 'env'];

    protected function configure(): void
    {
        $this->setHelp(self::HELP)
            ->addUsage('[options] [--] [command template] < input')
            ->addUsage('[options] [--] [command template] ::: [argument...]')
            ->addUsage('[options] [--] [command template] :::: [file...]')
            ->addArgument(RunOptions::WORDS, InputArgument::IS_ARRAY, 'The command, and a list after ::: or ::::');
        foreach (OptionTable::ofRun()->defined() as $option) {
            $isList = \in_array($option->name(), self::LISTS, true);
            $this->getDefinition()->addOption($option->definition($isList));
        }
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        // OptionParser has replaced each -v after `run` by --print, so a remaining -v is before `run`. The check does
        // not use $output->isVerbose(), which is also true if the environment variable SHELL_VERBOSITY is set.
        if (!$output->isDebug() && $input->hasParameterOption(['-v', '-vv', '--verbose'], true)) {
            throw new UsageException('option -v: give it after run, to print each command before its output');
        }
        $options = RunOptions::of($input);

        return $options->output->dryRun
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
