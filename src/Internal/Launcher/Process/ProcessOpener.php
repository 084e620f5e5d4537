<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

use Spindle\Internal\Launcher\LauncherProtocol;

/**
 * Starts processes with proc_open, after the checks that exec would make. All processes are in the launcher's process
 * group, so the group does not identify an orphan's job. The variable {@see LauncherProtocol::MARKER} does.
 */
final class ProcessOpener
{
    /** Descriptor of the exit pipe in the child. The end of file of this pipe announces the exit of the child. */
    public const EXIT_PIPE = 3;

    /**
     * Shell command that starts a program with the inherited descriptor 3 as its standard output. proc_open() alone
     * would need descriptor 3 as a stream, and would first restore the file position that the stream remembers. Then
     * the program could overwrite output that other processes have written to the file.
     */
    private const WITH_INHERITED_STDOUT = ['/bin/sh', '-c', 'exec "$@" >&3 3>&-', 'sh'];

    /** Descriptor of the exit pipe in the child if WITH_INHERITED_STDOUT uses descriptor 3. */
    private const EXIT_PIPE_BESIDE_STDOUT = 4;

    /** Lowest descriptor number that stream_select can't watch. */
    private const FD_SETSIZE = 1024;

    /** Number of descriptors that jobs leave free, for files that the launcher opens for a short time. */
    private const SPARE_DESCRIPTORS = 16;

    public readonly int $maxDescriptors;

    /** @var resource /dev/null */
    private readonly mixed $null;

    /** @var array<string, string> inherited environment of jobs that are started next, name => `NAME=value` */
    private array $variables = [];

    public function __construct(private readonly string $token)
    {
        $this->maxDescriptors = self::maxDescriptors();
        $null = fopen('/dev/null', 'r+e');
        \assert($null !== false);
        $this->null = $null;
    }

    /** @param list<string> $environment `NAME=value`, for the launcher and jobs that are started after this call */
    public function useEnvironment(array $environment): void
    {
        $this->variables = [];
        foreach (array_keys(getenv(null, true)) as $name) {
            putenv("{$name}");
        }
        foreach ($environment as $variable) {
            $this->variables[explode('=', $variable, 2)[0]] = $variable;
            putenv($variable);
        }
    }

    /**
     * Starts the job, and sets its process handle and pipes. Only the pipe for the input is non-blocking.
     *
     * @param int $openDescriptors number of descriptors that are open for jobs
     *
     * @return bool false when nothing was started, because no descriptors or processes are available now
     *
     * @throws StartFailure when the job can't be started at all
     */
    public function start(LauncherJob $job, int $openDescriptors): bool
    {
        Programs::changeDirectory($job->directory);
        umask($job->umask);
        $environment = $this->environmentOf($job);
        $arguments = $job->argumentList();
        $tooLarge = ArgumentSize::failure($arguments, $job->line, $environment ?? array_values($this->variables));
        if ($tooLarge !== null) {
            throw $tooLarge;
        }
        $path = $job->path($this->variables);
        $command = $arguments === []
            ? self::shellCommand($job->line)
            : $this->checked($arguments, $path, $job->directory);
        $descriptors = $this->descriptorsOf($job);
        if (\count($descriptors) > $this->maxDescriptors - $openDescriptors) {
            return false;
        }
        $inheritsFile = !isset($descriptors[1]);
        if ($inheritsFile) {
            $words = \is_array($command) ? $command : [Programs::SHELL, '-c', '--', $command];
            $command = [...self::WITH_INHERITED_STDOUT, ...$words];
        }
        // Since PHP 8.3, proc_open searches for the program in the PATH of this process.
        putenv($path === null ? 'PATH' : "PATH={$path}");
        error_clear_last();
        $directory = \PHP_ZTS !== 0 ? $job->directory : null;
        // @phpstan-ignore argument.type (proc_open accepts values with integer keys as `NAME=value`)
        $process = @proc_open($command, $descriptors, $pipes, $directory, $environment);
        if ($process === false) {
            return $this->throwUnlessTemporary(error_get_last()['message'] ?? 'proc_open failed');
        }
        $job->process = $process;
        if ($inheritsFile) {
            $pipes[self::EXIT_PIPE] = $pipes[self::EXIT_PIPE_BESIDE_STDOUT];
            unset($pipes[self::EXIT_PIPE_BESIDE_STDOUT]);
        }
        $job->pipes = $pipes;
        foreach ($pipes as $pipe) {
            stream_set_read_buffer($pipe, 0);
        }
        if (isset($pipes[0])) {
            stream_set_blocking($pipes[0], false);
            stream_set_write_buffer($pipes[0], 0);
        }

        return true;
    }

    /**
     * Returns a shell line in the form that proc_open() needs. PHP passes a string to the shell without `--`, so the
     * shell would read a line such as `-n` as options. Such a line is returned as an array with `--`.
     *
     * @return string|non-empty-list<string>
     */
    private static function shellCommand(string $line): string|array
    {
        return preg_match('/^[+-]/', $line) === 1 ? [Programs::SHELL, '-c', '--', $line] : $line;
    }

    /** Returns how many descriptors jobs may have: the limit, minus spare ones and those that the launcher uses. */
    private static function maxDescriptors(): int
    {
        $limit = \function_exists('posix_getrlimit')
            ? (posix_getrlimit()['soft openfiles'] ?? self::FD_SETSIZE)
            : self::FD_SETSIZE;
        $limit = min(\is_int($limit) ? $limit : self::FD_SETSIZE, self::FD_SETSIZE);
        $used = array_filter(
            Files::in('/proc/self/fd'),
            static fn(string $descriptor): bool => (int) $descriptor < $limit,
        );

        return max(0, $limit - self::SPARE_DESCRIPTORS - \count($used));
    }

    /**
     * Returns the environment of the job; null if the job inherits the launcher's environment, which is fastest.
     *
     * @return list<string>|null `NAME=value`; if names were the keys, proc_open would drop variables with empty values
     */
    private function environmentOf(LauncherJob $job): ?array
    {
        $marker = LauncherProtocol::MARKER . "={$this->token}.{$job->id}";
        if ($job->changes === []) {
            putenv($marker);

            return null;
        }

        return [$marker, ...array_values($job->environment($this->variables))];
    }

    /**
     * Refuses programs that exec would refuse, because proc_open would report the failure only as exit code 127.
     *
     * @param non-empty-list<string> $arguments
     *
     * @return non-empty-list<string> command line for proc_open()
     */
    private function checked(array $arguments, ?string $path, string $directory): array
    {
        $file = $arguments[0];
        if (!str_contains($file, '/')) {
            $file = Programs::find($file, $path ?? Programs::DEFAULT_PATH);
            // If PATH is set, exec itself searches PATH, so argv[0] stays as given. Otherwise exec would search other
            // directories than DEFAULT_PATH, so argv[0] becomes the path of the file.
            $arguments[0] = $path === null ? $file : $arguments[0];
        }
        $failure = UnusableProgram::fileFailure($file, $directory);
        $head = $failure === null ? UnusableProgram::head($file) : null; // read once, because this is slow
        $failure ??= UnusableProgram::interpreterFailure($head);
        if ($failure !== null) {
            throw $failure;
        }

        return Programs::needsShell($head) ? Programs::shellCommand($file, $arguments) : $arguments;
    }

    /** @return array<int, list<string>|resource> descriptors of the child, as proc_open() expects them */
    private function descriptorsOf(LauncherJob $job): array
    {
        $flags = $job->flags;
        $null = $this->null;
        $descriptors = [
            ($flags & (LauncherProtocol::INPUT_INLINE | LauncherProtocol::INPUT_FOLLOWS)) !== 0 ? ['pipe', 'r'] : $null,
            ['pipe', 'w'],
            ['pipe', 'w'],
            self::EXIT_PIPE => ['pipe', 'w'],
        ];
        if (($flags & LauncherProtocol::DISCARD_STDOUT) !== 0) {
            $descriptors[1] = $null;
        } elseif (($flags & LauncherProtocol::INHERIT_STDOUT) !== 0 && is_file('/proc/self/fd/3')) {
            $descriptors[self::EXIT_PIPE_BESIDE_STDOUT] = $descriptors[self::EXIT_PIPE];
            unset($descriptors[1], $descriptors[self::EXIT_PIPE]);
        } elseif (($flags & LauncherProtocol::INHERIT_STDOUT) !== 0) {
            $stdout = fopen('php://fd/3', 'w');
            $descriptors[1] = $stdout === false ? $null : $stdout;
        }
        if (($flags & LauncherProtocol::DISCARD_STDERR) !== 0) {
            $descriptors[2] = $null;
        } elseif (($flags & LauncherProtocol::INHERIT_STDERR) !== 0) {
            // Without an entry, the child inherits descriptor 2. With a stream as the entry, PHP would restore the file
            // position that the stream remembers.
            unset($descriptors[2]);
        }

        return $descriptors;
    }

    /**
     * @return bool false if no descriptors, processes or memory are available now
     *
     * @throws StartFailure for any other reason
     */
    private function throwUnlessTemporary(string $message): bool
    {
        if (preg_match(
            '/Too many open files|Resource temporarily unavailable|Cannot allocate memory/i',
            $message,
        ) === 1) {
            return false;
        }

        throw str_contains($message, 'Exec format error') // not in PHP 8.2 with glibc: its execvp() starts a shell
            ? UnusableProgram::unknownFormat()
            : new StartFailure(str_contains($message, 'No such file') ? 127 : 126, $message);
    }
}
