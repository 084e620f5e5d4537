<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Warnings;

/** Detects changed, added or removed PHP files of a folder tree. Skips vendor, dot files, and dot or linked folders. */
final class FileWatch
{
    public const INTERVAL_NANOSECONDS = 500_000_000;

    private const MAX_NAMED_FILES = 5;

    /**
     * @var array<string, array{string, string}> by relative path: the status (mtime, size and inode), and the hash of
     *                                           the content; '' for an unknown hash
     */
    private array $files = [];

    /** @var array<string, true> by path: files written just before the last scan; the next scan hashes them again */
    private array $unsettled = [];

    /** @param (\Closure(): int)|null $time returns the current Unix time in seconds; null for time() */
    public function __construct(private readonly string $folder, private readonly ?\Closure $time = null)
    {
        $this->files = $this->scan();
    }

    /** @return list<string> relative paths of files changed since the last call; the last entry may be "N more" */
    public function changes(): array
    {
        $files = $this->scan();
        $changed = array_keys(
            array_filter(
                $files,
                fn(array $file, string $path): bool => self::differ($file, $this->files[$path] ?? null),
                \ARRAY_FILTER_USE_BOTH,
            ) + array_diff_key($this->files, $files),
        );
        $this->files = $files;
        $more = \count($changed) - self::MAX_NAMED_FILES;

        return $more > 0 ? [...\array_slice($changed, 0, self::MAX_NAMED_FILES), "{$more} more"] : $changed;
    }

    /**
     * Returns whether a file is new or has another hash. If a hash is unknown, the status is compared instead.
     *
     * @param array{string, string}      $file
     * @param array{string, string}|null $before
     */
    private static function differ(array $file, ?array $before): bool
    {
        return match (true) {
            $before === null => true,
            $file[1] !== '' && $before[1] !== '' => $file[1] !== $before[1],
            default => $file[0] !== $before[0],
        };
    }

    /** @return array<string, array{string, string}> */
    private function scan(): array
    {
        clearstatcache();
        $now = $this->time === null ? time() : ($this->time)();
        [$files, $folders] = [[], ['']];
        while (($folder = array_pop($folders)) !== null) {
            foreach (Files::in("{$this->folder}/{$folder}") as $name) {
                $file = "{$this->folder}/{$folder}{$name}";
                if (str_starts_with($name, '.') || $name === 'vendor') {
                    continue;
                }
                if (is_dir($file) && !is_link($file)) {
                    $folders[] = "{$folder}{$name}/";
                } elseif (str_ends_with($name, '.php')) {
                    $files[$folder . $name] = $this->version($folder . $name, $file, $now);
                }
            }
        }

        return $files;
    }

    /**
     * Returns status and hash. Hashes a file if its status has changed. The mtime is in full seconds, so two writes in
     * the same second may leave the same status. Therefore, this scan and the next scan also hash a file that was
     * written in the last second.
     *
     * @return array{string, string}
     */
    private function version(string $path, string $file, int $now): array
    {
        $stat = Warnings::suppressed(static fn(): array|false => stat($file));
        if ($stat === false) {
            return ['', '']; // the file was removed during the scan
        }
        $status = "{$stat['mtime']} {$stat['size']} {$stat['ino']}";
        $isRecent = abs($now - $stat['mtime']) <= 1;
        [$statusBefore, $hashBefore] = $this->files[$path] ?? [$status, ''];
        $mustHash = $isRecent || isset($this->unsettled[$path]) || $status !== $statusBefore;
        if ($isRecent) {
            $this->unsettled[$path] = true;
        } else {
            unset($this->unsettled[$path]);
        }

        $hash = static fn(): string => (string) hash_file('xxh3', $file);

        return [$status, $mustHash ? Warnings::suppressed($hash) : $hashBefore];
    }
}
