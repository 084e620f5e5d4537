<?php

declare(strict_types=1);

namespace Spindle\Http;

/** How a {@see Supervisor} keeps its processes. The defaults need no thought. */
final readonly class SupervisorOptions
{
    /**
     * @param int|null    $processes    that serve; null for as many as there are usable CPUs, or for 1 with $watch
     * @param bool        $watch        whether a change of a PHP file in or below the application's folder, vendor/ and symbolic links to folders left out, is a reload: for development
     * @param string|null $admin        an address for the metrics and the health of all processes together, {@see Admin}
     * @param bool        $statusPage   whether it has the status page too
     * @param string|null $certificate  path of the certificate chain for tls:// addresses, PEM; read anew for each connection, so that it can be replaced
     * @param string|null $key          path of its private key, PEM; null when the certificate's file has it
     * @param array<string, string> $certificates paths of other chains with their keys, by the name that a client asks for (SNI)
     * @param int|null    $maxRequests  after so many requests, or up to a tenth less, a process is replaced; null for never
     * @param int|null    $maxMemory    bytes in use by PHP from which on a process is replaced; null for never
     * @param float       $startTimeout seconds in which a process has to load the application, from 0.1 on
     * @param float       $stallTimeout seconds for which a process's event loop may stand still, from 0.1 on; then the process is killed. INF for any time
     * @param string|null $memoryLimit  PHP's memory_limit of each process, such as "512M", or "-1" for none. Null for the one that PHP was
     *                                  given; without that, an equal share of three quarters of the memory of the machine or the container,
     *                                  but at least 128 MB, and twice $maxMemory
     * @param list<string> $adminHosts  names by which the admin address may be asked, beside its own, IP addresses and localhost; "*" for any: {@see Admin::withHosts()}
     *
     * @throws \ValueError when a number is out of its range
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
        public ?int $maxMemory = null,
        public float $startTimeout = 30.0,
        public float $stallTimeout = 30.0,
        public array $adminHosts = [],
        public ?string $memoryLimit = null,
    ) {
        foreach (['processes' => $processes, 'maxRequests' => $maxRequests, 'maxMemory' => $maxMemory] as $name => $number) {
            if ($number !== null && $number < 1) {
                throw new \ValueError("The option {$name} must be at least 1, not {$number}");
            }
        }
        foreach (['startTimeout' => $startTimeout, 'stallTimeout' => $stallTimeout] as $name => $seconds) {
            if (!($seconds >= 0.1)) {
                throw new \ValueError("The option {$name} must be at least 0.1 seconds, not {$seconds}");
            }
        }
        if ($memoryLimit !== null && !self::isLimit($memoryLimit)) {
            throw new \ValueError("The option memoryLimit must be a number of bytes from 32M on, with K, M or G after it if wanted, or -1, not {$memoryLimit}");
        }
    }

    /** Less than that, and PHP could not load the application. */
    private static function isLimit(string $limit): bool
    {
        return $limit === '-1' || preg_match('/^[1-9]\d{0,11}[KMG]?$/D', $limit) === 1 && ini_parse_quantity($limit) >= 32 << 20;
    }
}
