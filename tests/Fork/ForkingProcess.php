<?php

declare(strict_types=1);

namespace Spindle\Tests\Fork;

use Spindle\Internal\LoadedFiles;

/**
 * The side of a ForkServer that forks; see server.php.
 *
 * @phpstan-type Request array{
 *     script: string,
 *     arguments: list<string>,
 *     directory: string,
 *     environment: array<string, string>,
 *     folder: string,
 * }
 */
final class ForkingProcess
{
    /** Classes of tests and of blocks in documents are not loaded ahead. */
    private const AHEAD = '/^(?:Spindle(?!\\\\Tests)|Symfony|Amp|Revolt|Psr|Predis|Composer|League)\\\\[\w\\\\]+$/';

    /** @var resource */
    private mixed $socket;

    /**
     * @param list<resource|false> $placeholders standard output and standard error
     * @param list<string>         $files        to load in each fork
     */
    public function __construct(string $address, private readonly array $placeholders, private readonly array $files)
    {
        $socket = stream_socket_client($address);
        if ($socket === false) {
            exit(1);
        }
        $this->socket = $socket;
    }

    /**
     * Serves requests until the socket is closed, and then exits.
     *
     * @return string in a fork, the script that it has to run
     */
    public function awaitScript(): string
    {
        while (\is_string($line = fgets($this->socket))) {
            /** @var Request $request */
            $request = unserialize((string) base64_decode($line, true));
            $pid = pcntl_fork();
            if ($pid === 0) {
                $this->become($request);
                foreach ($this->files as $file) {
                    require_once $file;
                }
                LoadedFiles::record();
                fwrite($this->socket, 'pid ' . getmypid() . "\n");
                fclose($this->socket);

                return $request['script'];
            }
            pcntl_waitpid($pid, $status);
            \assert(\is_int($status));
            $code = pcntl_wifsignaled($status) ? 128 + (int) pcntl_wtermsig($status) : (int) pcntl_wexitstatus($status);
            self::loadAhead("{$request['folder']}/classes");
            fwrite($this->socket, "status {$code}\n");
        }
        exit(0);
    }

    /** @param Request $request */
    private function become(array $request): void
    {
        $this->openDescriptors($request['folder']);
        foreach (array_diff_key(getenv(), $request['environment']) as $name => $_) {
            putenv($name);
        }
        foreach ($request['environment'] as $name => $value) {
            putenv("{$name}={$value}");
        }
        unset($GLOBALS['placeholders']);
        $arguments = [$request['script'], ...$request['arguments']];
        $_SERVER = [
            ...$request['environment'],
            ...array_fill_keys(['PHP_SELF', 'SCRIPT_NAME', 'SCRIPT_FILENAME', 'PATH_TRANSLATED'], $request['script']),
            'DOCUMENT_ROOT' => '',
            'REQUEST_TIME' => time(),
            'REQUEST_TIME_FLOAT' => microtime(true),
            'argv' => $arguments,
            'argc' => \count($arguments),
        ];
        [$GLOBALS['argv'], $GLOBALS['argc']] = [$arguments, \count($arguments)];
        chdir($request['directory']);
        self::reportClasses("{$request['folder']}/classes");
    }

    /**
     * As the CLI does, opens the constants as php://stdout and php://stderr, whose first streams have the descriptors
     * themselves. Streams that are opened later have copies. The first of php://stdin was opened for this program.
     */
    private function openDescriptors(string $folder): void
    {
        /** @var list<resource> $pipes which have to stay open */
        static $pipes = [];
        fclose(self::opened(fopen('php://stdin', 'r')));
        \define('STDIN', self::opened(fopen("{$folder}/stdin", 'r')));
        foreach (['stdout', 'stderr'] as $i => $name) {
            fclose(self::opened($this->placeholders[$i] ?? false));
            $pipes[] = self::opened(fopen("{$folder}/{$name}", 'w'));
            \define(strtoupper($name), fopen("php://{$name}", 'w'));
        }
    }

    /**
     * @param resource|false $stream
     *
     * @return resource
     */
    private static function opened(mixed $stream): mixed
    {
        return $stream === false ? exit(1) : $stream;
    }

    /** The classes that this fork loads are loaded before the next one starts. */
    private static function reportClasses(string $file): void
    {
        $before = self::classes();
        $pid = getmypid();
        register_shutdown_function(static function () use ($file, $before, $pid): void {
            if (getmypid() === $pid) {
                @file_put_contents($file, implode("\n", array_diff(self::classes(), $before)));
            }
        });
    }

    private static function loadAhead(string $file): void
    {
        $classes = is_file($file) ? explode("\n", (string) file_get_contents($file)) : [];
        foreach ($classes as $class) {
            preg_match(self::AHEAD, $class) === 1 && class_exists($class);
        }
    }

    /** @return list<string> */
    private static function classes(): array
    {
        return [...get_declared_classes(), ...get_declared_interfaces(), ...get_declared_traits()];
    }
}
