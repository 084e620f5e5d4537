<?php

declare(strict_types=1);

namespace Spindle\Cli;

use Spindle\Cli\Internal\Bench\BenchCommand;
use Spindle\Cli\Internal\ExitStatus;
use Spindle\Cli\Internal\OutputClosedException;
use Spindle\Cli\Internal\Queue\QueueCommand;
use Spindle\Cli\Internal\Run\KnownOptions\OptionHelp;
use Spindle\Cli\Internal\Run\KnownOptions\OptionParser;
use Spindle\Cli\Internal\Run\KnownOptions\OptionTable;
use Spindle\Cli\Internal\Run\RunCommand;
use Spindle\Cli\Internal\Run\Sem\SemCommand;
use Spindle\Cli\Internal\Serve\ServeCommand;
use Spindle\Cli\Internal\StandardOutput;
use Spindle\Cli\Internal\TerminalText;
use Spindle\Cli\Internal\UsageException;
use Spindle\Cli\Internal\Work\WorkCommand;
use Spindle\Internal\FileSizeLimit;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\PhpSettings;
use Spindle\LauncherException;
use Spindle\Remote\BrokerRefusedException;
use Spindle\SpindleException;
use Symfony\Component\Console\Application;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Command\ListCommand;
use Symfony\Component\Console\Exception\CommandNotFoundException;
use Symfony\Component\Console\Exception\ExceptionInterface;
use Symfony\Component\Console\Input\ArgvInput;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputDefinition;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;

/** The program `spindle`. Reports each failure, except a closed output, in one line on standard error. */
final class ConsoleApplication extends Application
{
    /** Version of Spindle, as in the newest section of CHANGELOG.md. */
    public const VERSION = LauncherProtocol::VERSION;

    /** Environment variables that change before doRun(), which restores them, because jobs inherit them. */
    private const CHANGED_VARIABLES = ['COLUMNS', 'LINES', 'SHELL_VERBOSITY'];

    /** Names that options have in similar programs, each with the name of this option in Spindle. */
    private const NAMES_ELSEWHERE = [
        'address' => 'listen', 'bind' => 'listen', 'host' => 'listen', 'port' => 'listen',
        'concurrency' => 'workers', 'processes' => 'workers', 'workers' => 'processes',
        'redis' => 'broker', 'url' => 'broker',
    ];

    private const OVERVIEW = <<<'HELP'
        Spindle runs many things at once:

          <info>spindle run</info>     runs a command for each line of input
          <info>spindle sem</info>     runs a command when fewer than N others are running
          <info>spindle serve</info>   serves an application over HTTP
          <info>spindle work</info>    runs the tasks of a queue; start it on each machine
          <info>spindle queue</info>   shows a queue, and retries or deletes its jobs
          <info>spindle bench</info>   compares Spindle with similar programs on this machine

        <info>spindle COMMAND --help</info> shows the options of a command.
        HELP;

    /** @var array<string, string|false> values before Symfony's changes; false for a variable that was not set */
    private array $environment = [];

    public function __construct()
    {
        parent::__construct('Spindle', self::VERSION);
        $this->setAutoExit(false);
        $this->setCatchExceptions(false);
        // Loads the classes of fail() now, because their files may have been removed when fail() needs them.
        array_map(class_exists(...), [ExitStatus::class, TerminalText::class]);
    }

    public function run(?InputInterface $input = null, ?OutputInterface $output = null): int
    {
        set_error_handler(null); // code of auto_prepend_file may have set a handler that throws despite `@`
        PhpSettings::set('display_errors', 'stderr'); // else, PHP's messages would mix with the output of jobs
        FileSizeLimit::handleSignal();
        foreach (self::CHANGED_VARIABLES as $name) {
            $this->environment[$name] = getenv($name, true);
        }
        $this->setTerminalSize();
        try {
            $input ??= new ArgvInput($this->arguments());
            $input->setInteractive(false);

            return parent::run($input, $output ?? new StandardOutput());
        } catch (OutputClosedException) {
            return ExitStatus::BROKEN_PIPE;
        } catch (UsageException $exception) {
            return self::fail($exception->getMessage(), ExitStatus::USAGE);
        } catch (ExceptionInterface $exception) {
            return self::fail(
                UsageException::withoutPassword(
                    rtrim($exception->getMessage(), '.') . self::suggestion($exception)
                        . $this->optionHint($exception) . $this->argumentHint($exception),
                ) . ' (see --help)',
                ExitStatus::USAGE,
            );
        } catch (LauncherException $exception) {
            // Removes the advice to change CommandPoolOptions, because only PHP code can do that.
            $message = (string) preg_replace('/[.;:]? [^.;:]*CommandPoolOptions\(.*$/s', '', $exception->getMessage());

            return self::fail($message, ExitStatus::TROUBLE);
        } catch (BrokerRefusedException $exception) {
            return self::fail($exception->getMessage(), ExitStatus::REFUSED);
        } catch (\Throwable $exception) {
            return self::fail(
                $exception instanceof SpindleException ? $exception->getMessage() : (string) $exception,
                ExitStatus::TROUBLE,
            );
        }
    }

    public function doRun(InputInterface $input, OutputInterface $output): int
    {
        foreach (\function_exists('putenv') ? $this->environment : [] as $name => $value) {
            putenv($value === false ? $name : "{$name}={$value}");
        }

        return parent::doRun($input, $output);
    }

    /** Sets a size of the terminal until doRun(). Otherwise, Symfony would start two processes to find its size. */
    private function setTerminalSize(): void
    {
        foreach (\function_exists('putenv') ? ['LINES', 'COLUMNS'] : [] as $name) {
            $this->environment[$name] === false ? putenv("{$name}=0") : null;
        }
    }

    /** Rejects inexact names, such as "ru" and "RUN": {@see arguments()} rewrites options only after exact names. */
    public function find(string $name): Command
    {
        $isMeant = static fn(string $whole): bool => str_starts_with($whole, strtolower($name))
            || self::isSwapped($whole, $name);
        $meant = $this->has($name) ? [] : array_values(array_filter(array_keys($this->all()), $isMeant));
        if ($meant !== []) {
            $question = 'Did you mean this? ' . implode(', ', $meant);

            throw new CommandNotFoundException("Command \"{$name}\" is not defined. {$question}", $meant);
        }

        return parent::find($name);
    }

    protected function getDefaultInputDefinition(): InputDefinition
    {
        return new InputDefinition([
            new InputArgument('command', InputArgument::REQUIRED, 'The command'),
            new InputOption('help', 'h', InputOption::VALUE_NONE, 'Show help for a command'),
            new InputOption('version', 'V', InputOption::VALUE_NONE, 'Show the version'),
            new InputOption(
                'ansi',
                null,
                InputOption::VALUE_NEGATABLE,
                "Force colours on or off [default:\non for a terminal unless NO_COLOR\nis set]",
            ),
            new InputOption(
                'verbose',
                'v|vv|vvv',
                InputOption::VALUE_NONE,
                "spindle run: With -vvv, log each\nstep to standard error",
            ),
        ]);
    }

    protected function getDefaultCommands(): array
    {
        return [
            self::helpCommand(),
            self::listCommand(),
            new RunCommand(),
            new SemCommand(),
            new ServeCommand(),
            new WorkCommand(),
            new QueueCommand(),
            new BenchCommand(),
        ];
    }

    /** @return list<string> words of the command line, with options of run and sem rewritten for Symfony's parser */
    private function arguments(): array
    {
        /** @var list<string> $arguments */
        $arguments = $_SERVER['argv'] ?? ['spindle'];
        foreach ($arguments as $position => $word) {
            if ($position === 0 || str_starts_with($word, '-')) {
                continue;
            }
            $options = match ($word) {
                'run' => OptionTable::ofRun(),
                'sem' => OptionTable::ofSem(),
                default => null,
            };
            if ($options !== null) {
                array_splice(
                    $arguments,
                    $position + 1,
                    null,
                    (new OptionParser($options))->normalise(\array_slice($arguments, $position + 1)),
                );
            }
            break;
        }

        return $arguments;
    }

    private static function helpCommand(): OptionHelp
    {
        $command = new OptionHelp();
        $command->setDescription('Shows help for a command')
            ->setHelp('<info>spindle help run</info> and <info>spindle run --help</info> print the same text.');

        return $command;
    }

    private static function listCommand(): ListCommand
    {
        $command = new ListCommand();
        $command->setDescription('Lists the commands')
            ->setHelp(self::OVERVIEW)
            ->setDefinition([
                new InputArgument('namespace', InputArgument::OPTIONAL, 'Unused: no command has a namespace'),
                new InputOption(
                    'format',
                    null,
                    InputOption::VALUE_REQUIRED,
                    'Print the list as txt, xml, json or md',
                    'txt',
                ),
                new InputOption('raw', null, InputOption::VALUE_NONE, 'Print only names and descriptions'),
                new InputOption('short', null, InputOption::VALUE_NONE, 'Leave out the arguments of each command'),
            ]);

        return $command;
    }

    /** Suggests `spindle run PROGRAM` for an unknown command: users of GNU parallel write `parallel PROGRAM`. */
    private static function suggestion(ExceptionInterface $exception): string
    {
        if (!$exception instanceof CommandNotFoundException || $exception->getAlternatives() !== []) {
            return '';
        }
        $line = 'spindle run';
        /** @var list<string> $arguments */
        $arguments = $_SERVER['argv'] ?? [];
        foreach (\array_slice($arguments, 1) as $word) {
            if (\in_array($word, ['help', 'list'], true)) {
                return ''; // the unknown command is an argument of help or list
            }
            $line .= " {$word}";
            if (!str_starts_with($word, '-')) {
                break;
            }
        }

        return ". Did you mean '{$line} ...'?";
    }

    private function optionHint(ExceptionInterface $exception): string
    {
        if (preg_match('/^The "--(.{2,})" option does not exist/', $exception->getMessage(), $match) !== 1) {
            return '';
        }
        $name = (new ArgvInput())->getFirstArgument() ?? '';
        $options = ($this->has($name) ? $this->get($name) : $this)->getDefinition()->getOptions();
        $distances = array_map(static fn(InputOption $option): int => match (true) {
            (self::NAMES_ELSEWHERE[$match[1]] ?? null) === $option->getName() => -1,
            str_starts_with($option->getName(), $match[1]), self::isSwapped($option->getName(), $match[1]) => 0,
            default => levenshtein($option->getName(), $match[1]),
        }, $options);
        asort($distances);
        $nearest = array_key_first($distances);

        return $distances[$nearest] <= 1 + \strlen($match[1]) / 4 ? ". Did you mean --{$nearest}?" : '';
    }

    private function argumentHint(ExceptionInterface $exception): string
    {
        $message = $exception->getMessage();
        if (preg_match('/^No arguments expected for "work" command, got "([\w.-]{1,64})"/', $message, $match) === 1) {
            return ". Did you mean --queue {$match[1]}?";
        }
        $name = (new ArgvInput())->getFirstArgument() ?? '';
        $isMissing = preg_match('/^Not enough arguments \(missing: "(\w+)"/', $message, $match) === 1;

        return $isMissing && $this->has($name)
            ? ': ' . lcfirst($this->get($name)->getDefinition()->getArgument($match[1])->getDescription())
            : '';
    }

    /** Returns whether two names differ only in the order of their letters. */
    private static function isSwapped(string $name, string $other): bool
    {
        return count_chars($name, 1) === count_chars($other, 1);
    }

    private static function fail(string $message, int $status): int
    {
        $line = TerminalText::escape(trim((string) preg_replace('/\s*\n\s*/', ' ', $message)));
        fwrite(\STDERR, "spindle: {$line}\n");

        return $status;
    }
}
