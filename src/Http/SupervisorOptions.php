<?php

declare(strict_types=1);

namespace Spindle\Http;

use Spindle\Http\Internal\Server\Certificates;
use Spindle\Internal\NumberRange;

/** Number, limits and replacement of the processes of a {@see Supervisor}. The defaults suit most servers. */
final readonly class SupervisorOptions
{
    /**
     * Largest number of processes. The supervisor needs a descriptor for each process, and during a reload also for the
     * old process until it has ended. stream_select() can watch descriptors up to 1023.
     */
    public const MAX_PROCESSES = 500;

    /**
     * @param int|null    $processes    worker processes, at most 500; null for 1 with $watch or without ext-pcntl,
     *                                  otherwise for the number of usable CPUs, at most 500
     * @param bool        $watch        for development: reload when a PHP file in or below the application's folder
     *                                  changes. Folders named vendor, dot files, dot folders, and symbolic links to
     *                                  folders are ignored
     * @param string|null $admin        address of an {@see Admin} for all processes together
     * @param bool        $statusPage   whether the admin address has the status page too
     * @param string|null $certificate  path of the certificate chain for tls:// addresses, PEM; read for each
     *                                  connection, so the file can be replaced
     * @param string|null $key          path of the private key, PEM, without a passphrase; null when the certificate's
     *                                  file contains the key
     * @param array<string, string> $certificates paths of PEM files by the host name that a client requests (SNI).
     *                                            Each file has the certificate chain and the key for that name. The
     *                                            certificates of the application's HttpServerOptions are also used
     * @param int|null    $maxRequests  requests after which a process is replaced; null for no limit. The limit of
     *                                  each process is up to a tenth lower, at random, so that not all end at once
     * @param int|null    $maxMemoryBytes a process is replaced when its PHP uses this many bytes; null for no limit
     * @param float       $startTimeout seconds in which a process has to load the application, at least 0.1
     * @param float       $blockTimeout seconds for which the event loop of a process may be blocked before the
     *                                  supervisor kills the process, at least 0.1; INF for no limit
     * @param string|null $memoryLimit  PHP's memory_limit of each process, such as "512M", or "-1" for none. Null for
     *                                  PHP's setting. If nothing sets memory_limit, or php.ini sets -1, null gives each
     *                                  process an equal share of three quarters of the machine's or container's
     *                                  memory. This share is at least 128 MB, and at least twice $maxMemoryBytes
     * @param list<string> $adminHosts  more host names that requests to the admin address may use. The name in $admin,
     *                                  IP addresses and localhost are always allowed: {@see Admin::withHosts()}
     * @param bool|null   $traceBlocks  for development: whether a function that blocks the event loop of a process for
     *                                  half a second is logged, together with its callers. To find them, a signal
     *                                  interrupts the function, so sleep() returns early. Null for the value of $watch
     *
     * @throws \ValueError when a number or $memoryLimit is out of its range, $maxMemoryBytes is not below $memoryLimit,
     *                     or $certificates does not map host names to paths
     */
    public function __construct(
        public ?int $processes = null,
        public bool $watch = false,
        public ?string $admin = null,
        public bool $statusPage = false,
        public ?string $certificate = null,
        public ?string $key = null,
        public array $certificates = [],
        public ?int $maxRequests = null,
        public ?int $maxMemoryBytes = null,
        public float $startTimeout = 30.0,
        public float $blockTimeout = 30.0,
        public array $adminHosts = [],
        public ?string $memoryLimit = null,
        public ?bool $traceBlocks = null,
    ) {
        Certificates::checkOption($certificates);
        NumberRange::checkPositiveCounts([
            'processes' => $processes,
            'maxRequests' => $maxRequests,
            'maxMemoryBytes' => $maxMemoryBytes,
        ]);
        if ($processes > self::MAX_PROCESSES) {
            throw new \ValueError(
                'The option processes must be at most ' . self::MAX_PROCESSES . ", not {$processes}: each process loads"
                    . ' the application, and one process for each CPU is usually enough',
            );
        }
        foreach (['startTimeout' => $startTimeout, 'blockTimeout' => $blockTimeout] as $name => $seconds) {
            if (!($seconds >= 0.1)) {
                throw new \ValueError(
                    "The option {$name} must be at least 0.1 seconds, not " . NumberRange::text($seconds),
                );
            }
        }
        if ($memoryLimit !== null && !self::isMemoryLimit($memoryLimit)) {
            throw new \ValueError(
                'The option memoryLimit must be a number of bytes, at least 32M, optionally with K, M or G, or -1,'
                    . " not {$memoryLimit}",
            );
        }
        if (!self::allowsReplacement($maxMemoryBytes, $memoryLimit)) {
            throw new \ValueError(
                "The option maxMemoryBytes must be less than memoryLimit ({$memoryLimit}), not {$maxMemoryBytes}. "
                    . 'Otherwise, a process fails before it is replaced',
            );
        }
    }

    /** @internal Returns whether a process is replaced at `$maxMemoryBytes` before it fails at `$memoryLimit`. */
    public static function allowsReplacement(?int $maxMemoryBytes, ?string $memoryLimit): bool
    {
        return $maxMemoryBytes === null || $memoryLimit === null || $memoryLimit === '-1'
            || $maxMemoryBytes < ini_parse_quantity($memoryLimit);
    }

    /** Returns whether a memory limit is valid. With less than 32M, PHP could not load the application. */
    private static function isMemoryLimit(string $limit): bool
    {
        return $limit === '-1'
            || preg_match('/^[1-9](?:\d{0,17}|\d{0,8}[KMG])$/D', $limit) === 1
                && ini_parse_quantity($limit) >= 32 << 20;
    }
}
