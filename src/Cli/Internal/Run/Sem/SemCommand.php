<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Sem;

use Spindle\Cli\Internal\ExitStatus;
use Spindle\Cli\Internal\Run\KnownOptions\OptionTable;
use Spindle\Cli\Internal\TerminalText;
use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;

#[AsCommand('sem', 'Runs a command when fewer than N others are running')]
final class SemCommand extends Command
{
    private const HELP = <<<'HELP'
        Runs a command when fewer than N commands with the same --id run:

          <info>for file in *.log; do spindle sem --id logs -j 4 gzip "$file"; done</info>
          <info>spindle sem --id logs --wait</info>
          <info>spindle sem --id deploy --fg ./deploy</info>

        Without --fg, the command starts in the background, and spindle sem ends. A
        command of several words is a program and its arguments. A shell reads a
        command of one word if it contains white space or characters that are special
        to a shell, as in spindle run.

        Commands with the same --id share a semaphore, which belongs to the user and
        the machine. It needs no clean-up: the system releases it when the command has
        ended or was killed.

        <comment>Exit status</comment>
          0          The command was started, or all commands have ended (--wait).
          any        With --fg, the status of the command: 128 + N after signal N.
          1          The time of --st was over, and nothing was started.
          141        With --fg: the reader of the output closed it.
          254        With --fg: the output can't be stored or written.
          255        An option is invalid, or the semaphore can't be used.
        HELP;

    /**
     * Runs the command. Only this shell keeps descriptor 3, the pipe of the semaphore. So background processes that the
     * command leaves behind do not hold the semaphore. `exec` runs a program even if a builtin has the same name.
     */
    private const UNGROUPED = '(exec "$@") 3>&-; exit $?';

    /**
     * Prints the output when the command has ended, so that outputs of several commands are not mixed. The script sets
     * no variable before the command, because this would change a variable of that name in the command's environment.
     * A block of a new file can't be written if the disk is full, so that output may have been lost.
     */
    private const GROUPED = <<<'SH'
        set -- "$(mktemp)" "$(mktemp)" "$@"
        [ -n "$1" ] && [ -n "$2" ] || { rm -f "$1" "$2"; exit 254; }
        exec 5>"$1" 6>"$2" 7<"$1" 8<"$2"
        rm -f "$1" "$2"
        shift 2
        (exec "$@") >&5 2>&6 3>&- 5>&- 6>&- 7<&- 8<&-
        status=$?
        printed=0
        block=$(mktemp)
        if ! (printf %512s '' >"$block") 2>/dev/null; then
            echo "spindle: the output may be incomplete, because ${TMPDIR:-/tmp} has no space left" >&2
            printed=254
        fi
        rm -f "$block"
        cat <&7 || printed=$?
        cat <&8 >&2 || printed=$?
        case $printed in
            0) exit $status ;;
            141) exit 141 ;;
            *) exit 254 ;;
        esac
        SH;

    /** A shell gives a background command an empty input, so the command gets standard input through descriptor 4. */
    private const IN_BACKGROUND = "exec 4<&0\n{\n%s\n} <&4 4<&- &";

    protected function configure(): void
    {
        $this->setHelp(self::HELP)
            ->addUsage('[options] [--] command')
            ->addUsage('[options] --wait')
            ->addArgument(SemOptions::WORDS, InputArgument::IS_ARRAY, 'The command');
        foreach (OptionTable::ofSem()->defined() as $option) {
            $this->getDefinition()->addOption($option->definition());
        }
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $options = SemOptions::of($input);
        $semaphore = Semaphore::open($options->name);
        $pipe = $semaphore->acquire($options->limit, $options->timeout);
        if ($pipe === null) {
            $startsAnyway = $options->startsAnyway && $options->command !== [];
            fwrite(\STDERR, \sprintf(
                "spindle: the semaphore '%s' was not free within %s s; %s\n",
                TerminalText::escape($options->name),
                $options->timeout,
                match (true) {
                    $startsAnyway => 'going on anyway',
                    $options->command === [] => 'commands are still running',
                    default => 'nothing was started',
                },
            ));
            if (!$startsAnyway) {
                return ExitStatus::ofFailures(1);
            }
        }
        $pipe ??= $semaphore->take();

        try {
            return $options->command === [] ? ExitStatus::OK : self::start($options, $pipe);
        } finally {
            if ($options->command === [] || $options->isForeground) {
                $semaphore->release();
            }
        }
    }

    /** @param resource $pipe */
    private static function start(SemOptions $options, mixed $pipe): int
    {
        $program = $options->isUngrouped ? self::UNGROUPED : self::GROUPED;
        $pipes = [];
        if (\function_exists('pcntl_signal')) {
            pcntl_signal(\SIGPIPE, \SIG_DFL); // PHP ignores the signal, and the command would inherit this setting.
        }
        $process = proc_open(
            [
                '/bin/sh',
                '-c',
                $options->isForeground ? $program : \sprintf(self::IN_BACKGROUND, $program),
                'sh',
                ...$options->command,
            ],
            [3 => $pipe],
            $pipes,
        );

        return $process === false ? ExitStatus::TROUBLE : proc_close($process);
    }
}
