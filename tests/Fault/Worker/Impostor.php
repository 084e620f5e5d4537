<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Worker\Internal\Process\WorkerBoot;
use Spindle\Worker\Internal\WorkerProtocol;

/** A socket that a worker, or a host of workers, mistakes for the socket of the pool that started it. */
final class Impostor
{
    /** Seconds to wait for a process that neither ends nor obeys. */
    private const PATIENCE = 10.0;

    /** @var resource */
    private readonly mixed $socket;

    /** @var array<string, mixed> settings in the format of {@see \Spindle\Worker\Internal\WorkerSettings} */
    private readonly array $settings;

    /** Bytes received from all connections. */
    private string $told = '';

    /**
     * @param 'fork'|'thread'|null     $kind   how the process, a host, runs its workers; null for a worker
     * @param \Closure(string): string $answer returns the bytes that precede the orders, for a greeting
     * @param string                   $file   file that the orders create
     */
    public function __construct(
        private readonly ?string $kind,
        string $secret,
        private readonly \Closure $answer,
        private readonly string $file,
    ) {
        $name = 'spindle-' . bin2hex(random_bytes(16));
        $socket = stream_socket_server("unix://\0{$name}");
        \assert($socket !== false);
        $this->socket = $socket;
        $this->settings = [
            'socket' => $name,
            'secret' => $secret,
            'key' => random_bytes(32),
            'id' => 1,
            'sharedMemoryKey' => 0,
            'files' => [\dirname(__DIR__, 3) . '/vendor/autoload.php'],
            'initialize' => null,
            'depth' => 1,
            'siblings' => 1,
            'timed' => false,
            'maxResultBytes' => 1 << 20,
            'maxMemoryGrowthBytes' => null,
            'restoresState' => false,
        ];
    }

    /**
     * Waits until the process has ended, or has obeyed.
     *
     * @return array{bool, string, string} whether it ended although it could have continued; its output; bytes it sent
     */
    public function deceive(): array
    {
        $main = \dirname((string) (new \ReflectionClass(WorkerBoot::class))->getFileName()) . '/main.php';
        $process = proc_open(
            ['sh', '-c', 'exec "$@" 2>&1', 'sh', \PHP_BINARY, $main],
            [['pipe', 'r'], ['pipe', 'w']],
            $pipes,
        );
        \assert(\is_resource($process));
        /** @var array{resource, resource} $pipes */
        fwrite($pipes[0], serialize(($this->kind === null ? [] : ['host' => $this->kind]) + $this->settings));
        fclose($pipes[0]);
        $ended = $this->talk($pipes[1]);
        fclose($this->socket);
        $printed = (string) stream_get_contents($pipes[1]);
        proc_close($process);

        return [$ended, $printed, $this->told];
    }

    /** @param resource $output output of the process, which ends with it */
    private function talk(mixed $output): bool
    {
        $links = [];
        $end = microtime(true) + self::PATIENCE;
        for (; microtime(true) < $end && !is_file($this->file); clearstatcache()) {
            $reads = [...$links, $output, $this->socket];
            $none = null;
            stream_select($reads, $none, $none, 0, 20_000);
            if (\in_array($output, $reads, true)) {
                return true; // the output, which should be empty, is read later
            }
            if (\in_array($this->socket, $reads, true) && ($newcomer = stream_socket_accept($this->socket)) !== false) {
                $links[] = $newcomer;
                $greeting = (string) fread($newcomer, 4096);
                $this->told .= $greeting;
                @fwrite($newcomer, ($this->answer)($greeting) . $this->orders($greeting));
            }
            foreach ($links as $i => $link) {
                $bytes = \in_array($link, $reads, true) ? (string) fread($link, 4096) : null;
                $this->told .= $bytes;
                if ($bytes === '') {
                    unset($links[$i]);
                }
            }
        }

        return false;
    }

    /** Returns orders. For a worker, a task. For a host, the start of a worker, which then receives the task. */
    private function orders(string $greeting): string
    {
        if ($greeting[4] === \chr(WorkerProtocol::HOST)) {
            $inherited = ['directory' => '/', 'moved' => false, 'umask' => null, 'set' => [], 'unset' => []];
            $settings = ['inherited' => $inherited] + $this->settings;

            return WorkerProtocol::frame(WorkerProtocol::START, 1, serialize($settings));
        }

        return WorkerProtocol::frame(WorkerProtocol::CODE, 5, serialize(['f', 'touch']))
            . WorkerProtocol::frame(WorkerProtocol::TASKS, 1, pack('VVC', 5, 1, 0) . serialize([$this->file]));
    }
}
