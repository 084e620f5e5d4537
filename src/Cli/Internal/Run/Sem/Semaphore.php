<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Sem;

use Spindle\Cli\Internal\UsageException;
use Spindle\Internal\Clock;

/**
 * A counting semaphore for all processes of a user. Each holder has its own named pipe open for writing. When a holder
 * ends or is killed, the system closes its pipe. This wakes the waiting processes, which have the pipe open for
 * reading. The next process that acquires a semaphore removes the pipes without a writer.
 */
final class Semaphore
{
    /** The largest limit. A waiting process needs a descriptor for each holder. */
    public const MAX_HOLDERS = 500;

    /** Umask for new files: only the owner has access. The caller's umask could deny access even to the owner. */
    private const UMASK = 0o077;

    private const PRIVATE_FOLDER = 0o040700; // st_mode of a folder with mode 0700

    /** A new folder can inherit this bit from its parent. The bit is ignored, because it gives no access: inode(7). */
    private const S_ISGID = 0o2000;

    private const PIPE_PATTERN = '/^[0-9a-f]{32}\.[0-9a-f]{16}$/D';

    /** Path of the pipe of this process; empty before it holds the semaphore. */
    private string $path = '';

    /**
     * @param resource $lock   locked while pipes are counted, created or removed
     * @param string   $prefix beginning of the names of this semaphore's pipes
     */
    private function __construct(
        private readonly string $folder,
        private readonly mixed $lock,
        private readonly string $prefix,
    ) {}

    /** @throws UsageException when there is no private folder for the pipes */
    public static function open(string $name): self
    {
        if (!\function_exists('posix_mkfifo')) {
            throw new UsageException('spindle sem needs posix_mkfifo() of ext-posix');
        }
        $folder = sys_get_temp_dir() . '/spindle-sem-' . posix_geteuid();
        $umask = umask(self::UMASK);
        @mkdir($folder, self::PRIVATE_FOLDER & 0o777);
        $stat = @lstat($folder);
        $isPrivate = $stat !== false
            && $stat['uid'] === posix_geteuid()
            && ($stat['mode'] & ~self::S_ISGID) === self::PRIVATE_FOLDER;
        $lock = $isPrivate ? @fopen("{$folder}/lock", 'c+e') : false;
        umask($umask);
        if ($lock === false) {
            throw new UsageException(
                "can't use the folder '{$folder}' for semaphores: it is not a writable folder of this user with mode"
                . ' 0700; remove it, or set TMPDIR to another folder',
            );
        }

        return new self($folder, $lock, hash('xxh128', $name));
    }

    /**
     * Waits until fewer than $limit processes hold the semaphore, and becomes a holder.
     *
     * @param float $seconds maximum time to wait; INF for no maximum
     *
     * @return resource|null the pipe, open for writing; null when the time is over
     *
     * @throws UsageException
     */
    public function acquire(int $limit, float $seconds): mixed
    {
        $end = Clock::now() + $seconds;
        while (true) {
            flock($this->lock, \LOCK_EX);
            try {
                $holders = []; // closes the pipes that the previous pass has opened
                $holders = $this->holders();
                if (\count($holders) < $limit) {
                    return $this->hold();
                }
            } finally {
                flock($this->lock, \LOCK_UN);
            }
            $left = $end - Clock::now();
            if ($left <= 0) {
                return null;
            }
            // At least one of the first $limit holders must end. stream_select() fails for thousands of pipes.
            self::waitUntilOneEnds(\array_slice($holders, 0, $limit), $left);
        }
    }

    /**
     * Becomes a holder immediately, even if the limit is exceeded.
     *
     * @return resource the pipe, open for writing
     *
     * @throws UsageException
     */
    public function take(): mixed
    {
        flock($this->lock, \LOCK_EX);
        try {
            return $this->hold();
        } finally {
            flock($this->lock, \LOCK_UN);
        }
    }

    /**
     * Removes pipes without a holder, including those of other semaphores.
     *
     * @return list<resource> the pipes of this semaphore, open for reading
     */
    private function holders(): array
    {
        $holders = [];
        $files = scandir($this->folder);
        foreach ($files === false ? [] : $files as $file) {
            if (preg_match(self::PIPE_PATTERN, $file) !== 1) {
                continue;
            }
            $pipe = @fopen("{$this->folder}/{$file}", 'rne');
            if ($pipe === false) {
                $holders = []; // closes the pipes: without a free descriptor, PHP can't load the exception's class
                throw new UsageException("can't open '{$this->folder}/{$file}'; raise the limit of open files");
            }
            // A pipe without a writer is at its end. A pipe with a writer is empty, but not at its end.
            fread($pipe, 1);
            if (feof($pipe)) {
                unlink("{$this->folder}/{$file}");
            } elseif (str_starts_with($file, $this->prefix)) {
                $holders[] = $pipe;
            }
        }

        return $holders;
    }

    /** Removes the pipe when the command is over. Waiting processes notice when this process closes the pipe. */
    public function release(): void
    {
        flock($this->lock, \LOCK_EX);
        @unlink($this->path);
        flock($this->lock, \LOCK_UN);
    }

    /** @return resource */
    private function hold(): mixed
    {
        $path = $this->path = "{$this->folder}/{$this->prefix}." . bin2hex(random_bytes(8));
        // The pipe is opened for reading too: if it were opened only for writing, fopen() would wait for a reader.
        $umask = umask(self::UMASK);
        $pipe = @posix_mkfifo($path, 0o600) ? @fopen($path, 'r+e') : false;
        umask($umask);

        if ($pipe === false) {
            @unlink($path);
            throw new UsageException("can't create the named pipe '{$path}'");
        }

        return $pipe;
    }

    /** @param list<resource> $holders */
    private static function waitUntilOneEnds(array $holders, float $seconds): void
    {
        $none = null;
        $wait = is_infinite($seconds) ? null : (int) $seconds;
        $microseconds = $wait === null ? null : (int) (($seconds - $wait) * 1e6);
        // A signal can end the wait early. The caller then checks the holders again.
        @stream_select($holders, $none, $none, $wait, $microseconds);
    }
}
