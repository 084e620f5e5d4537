<?php

declare(strict_types=1);

namespace Spindle\Tests\Fork;

use PHPUnit\Framework\Assert;

/**
 * Runs PHP scripts, each in a fork of one PHP process that has loaded their classes before.
 *
 * A script finds what a process of its own would give it: arguments, environment, working directory, pipes as standard
 * descriptors, and an exit status. A fork needs a third of the CPU time of a PHP that starts and loads the classes.
 * Only /proc/PID/environ and /proc/PID/cmdline differ: they are those of the server.
 */
final class ForkServer
{
    private const DEADLINE = 240.0;

    private static ?self $shared = null;

    /**
     * @param resource $socket
     * @param resource $process
     */
    private function __construct(private readonly mixed $socket, private readonly mixed $process) {}

    public function __destruct()
    {
        fclose($this->socket);
        proc_close($this->process);
    }

    /** Newer versions of PHP define STDIN, STDOUT and STDERR for a script from standard input, too: see start(). */
    public static function isAvailable(): bool
    {
        return \PHP_VERSION_ID < 80300 && \function_exists('pcntl_fork') && \function_exists('posix_mkfifo');
    }

    /**
     * Runs a script with errors shown on standard error.
     *
     * @param list<string>          $arguments
     * @param array<string, string> $environment in addition to that of this process
     */
    public static function run(
        string $script,
        array $arguments,
        string $directory,
        array $environment = [],
        string $input = '',
    ): ProgramResult {
        return (self::$shared ??= self::start())->runScript($script, $arguments, $directory, $environment, $input);
    }

    private static function start(): self
    {
        $address = 'unix://' . sys_get_temp_dir() . '/spindle-fork-' . bin2hex(random_bytes(6));
        $listening = stream_socket_server($address);
        Assert::assertNotFalse($listening);
        // A script from standard input has no constants STDIN, STDOUT and STDERR, so that a fork can define its own.
        $options = ['error_reporting=-1', 'display_errors=stderr', 'log_errors=0', 'html_errors=0'];
        $options[] = 'zend.assertions=1';
        $options[] = 'opcache.enable_cli=0'; // the lock file of opcache would have one of the closed descriptors
        $options = array_merge(...array_map(static fn(string $option): array => ['-d', $option], $options));
        $packages = \dirname(__DIR__, 2) . '/vendor';
        $process = proc_open(
            ['sh', '-c', 'exec "$@" >&- 2>&-', 'sh', \PHP_BINARY, ...$options, '--', $packages, $address],
            [0 => ['file', __DIR__ . '/server.php', 'r']],
            $pipes,
        );
        $socket = stream_socket_accept($listening, self::DEADLINE);
        fclose($listening);
        unlink(substr($address, \strlen('unix://')));
        Assert::assertNotFalse($process);
        Assert::assertNotFalse($socket);

        return new self($socket, $process);
    }

    /**
     * @param list<string>          $arguments
     * @param array<string, string> $environment
     */
    private function runScript(
        string $script,
        array $arguments,
        string $directory,
        array $environment,
        string $input,
    ): ProgramResult {
        $folder = sys_get_temp_dir() . '/spindle-fork-' . bin2hex(random_bytes(6));
        mkdir($folder);
        $pipes = [];
        foreach (['stdin', 'stdout', 'stderr'] as $name) {
            posix_mkfifo("{$folder}/{$name}", 0o600);
            // For reading and writing, so that neither side waits for the other to open it.
            $pipe = fopen("{$folder}/{$name}", 'r+');
            Assert::assertNotFalse($pipe);
            stream_set_blocking($pipe, false);
            $pipes[$name] = $pipe;
        }
        $pid = 0;
        try {
            $request = [
                'script' => $script, 'arguments' => $arguments, 'directory' => $directory,
                'environment' => [...getenv(), ...$environment], 'folder' => $folder,
            ];
            fwrite($this->socket, base64_encode(serialize($request)) . "\n");
            $pid = (int) $this->answer('pid');

            return $this->results($pid, $pipes, $input);
        } catch (\Throwable $failure) {
            self::$shared = null; // the answers that are still missing would be taken for those of the next script
            if ($pid !== 0) {
                posix_kill($pid, \SIGKILL);
            }
            throw $failure;
        } finally {
            foreach ([...array_keys($pipes), 'classes'] as $name) {
                @unlink("{$folder}/{$name}");
            }
            rmdir($folder);
        }
    }

    /** @param array<string, resource> $pipes */
    private function results(int $pid, array $pipes, string $input): ProgramResult
    {
        $outputs = ['stdout' => '', 'stderr' => ''];
        $status = null;
        for ($end = hrtime(true) + (int) (self::DEADLINE * 1e9); $status === null;) {
            if ($input === '' && isset($pipes['stdin'])) {
                fclose($pipes['stdin']);
                unset($pipes['stdin']);
            }
            $reads = [$pipes['stdout'], $pipes['stderr'], $this->socket];
            $writes = isset($pipes['stdin']) ? [$pipes['stdin']] : [];
            $none = null;
            if (@stream_select($reads, $writes, $none, 1) === false) {
                continue; // interrupted by a signal
            }
            foreach ($writes as $stdin) {
                $input = substr($input, (int) fwrite($stdin, substr($input, 0, 4096)));
            }
            foreach (array_keys($outputs) as $name) {
                $outputs[$name] .= (string) stream_get_contents($pipes[$name]);
            }
            if (\in_array($this->socket, $reads, true)) {
                $status = $this->answer('status');
            } elseif (hrtime(true) > $end) {
                Assert::fail('The script did not end in time. ' . json_encode($outputs, \JSON_INVALID_UTF8_SUBSTITUTE));
            }
        }
        foreach (array_keys($outputs) as $name) {
            $outputs[$name] .= (string) stream_get_contents($pipes[$name]);
        }

        return new ProgramResult((int) $status, $outputs['stdout'], $outputs['stderr']);
    }

    private function answer(string $name): string
    {
        $line = (string) fgets($this->socket);
        Assert::assertStringStartsWith("{$name} ", $line, 'The fork server has ended');

        return rtrim(substr($line, \strlen($name) + 1));
    }
}
