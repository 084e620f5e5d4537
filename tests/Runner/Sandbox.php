<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

use Symfony\Component\Process\Process;

/**
 * Gives each test process its own Linux namespaces: process ids, temporary files, System V IPC and network.
 *
 * The kernel kills every process of a sandbox when the sandboxed command or the runner ends for any reason: see
 * pid_namespaces(7). Its files and its shared memory are released with its last process.
 */
final readonly class Sandbox
{
    private const TIMEOUT = 10.0;

    /** @param list<string>|null $prefix null when namespaces can't be created */
    private function __construct(private ?array $prefix) {}

    public static function detect(): self
    {
        $isRoot = posix_geteuid() === 0;
        $prefix = [
            'setpriv', '--pdeathsig', 'KILL',
            'unshare', ...($isRoot ? [] : ['--user', '--map-current-user', '--keep-caps']),
            '--mount', '--ipc', '--net', '--pid', '--fork', '--kill-child', '--mount-proc',
            'sh', __DIR__ . '/isolated.sh', self::temporaryDirectory(), $isRoot ? 'root' : 'user',
        ];
        try {
            $trial = new Process([...$prefix, 'true'], timeout: self::TIMEOUT);

            return new self($trial->run() === 0 ? $prefix : null);
        } catch (\RuntimeException) {
            return new self(null);
        }
    }

    public function isAvailable(): bool
    {
        return $this->prefix !== null;
    }

    /**
     * @param list<string> $command
     *
     * @return list<string>
     */
    public function around(array $command): array
    {
        return [...($this->prefix ?? []), ...$command];
    }

    /** Returns a folder that the sandbox may cover, because it contains nothing that the tests need. */
    private static function temporaryDirectory(): string
    {
        $needed = [(string) getcwd(), \PHP_BINARY, (string) realpath((string) getenv('SPINDLE_BIN'))];
        foreach (['/tmp', '/mnt', '/media'] as $candidate) {
            $covers = array_filter($needed, static fn(string $path): bool => str_starts_with($path, "{$candidate}/"));
            if ($covers === [] && is_dir($candidate)) {
                return $candidate;
            }
        }

        return '/srv';
    }
}
