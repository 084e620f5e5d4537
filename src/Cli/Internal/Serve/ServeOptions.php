<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Serve;

use Spindle\Cli\Internal\AdminHostOption;
use Spindle\Cli\Internal\Duration;
use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\UsageException;
use Spindle\Http\SupervisorOptions;
use Symfony\Component\Console\Input\InputInterface;

/** Reads and validates the options of `spindle serve`. Opens no file or socket. */
final class ServeOptions
{
    private const DEFAULT_ADDRESS = '127.0.0.1:8080';
    private const ADDRESS_PATTERN = '~^(?:(?:tcp://|tls://)?'
        . '(?:\[[0-9A-Fa-f:.]+\]|[^\s:\[\]/]+):(\d{1,5})|unix://.+)$~Ds';
    private const MAX_PORT = 65_535;

    /** Smallest timeout of an option, in seconds. With a shorter timeout, a busy process would seem blocked. */
    private const MIN_SECONDS = 0.1;
    private const UNITS = ['' => 1, 'K' => 1 << 10, 'M' => 1 << 20, 'G' => 1 << 30];

    /** @param list<string> $addresses */
    private function __construct(
        public readonly string $app, // path of the PHP file that returns the application
        public readonly array $addresses,
        public readonly SupervisorOptions $supervisor,
        public readonly bool $json,
        public readonly bool $quiet,
    ) {}

    /** @throws UsageException when an option is invalid or needs another option, or the application can't be read */
    public static function of(InputInterface $input): self
    {
        $given = new GivenOptions($input);
        /** @var list<string> $addresses */
        $addresses = $input->getOption('listen');
        $addresses = $addresses === [] ? [self::DEFAULT_ADDRESS] : $addresses;
        $admin = $given->text('admin');
        if ($given->flag('status') && $admin === null) {
            throw new UsageException(
                'option --status: the status page needs an admin address; add one, such as --admin 127.0.0.1:9085',
            );
        }
        $certificate = $given->text('certificate');
        array_map(static fn(string $address) => self::checkAddress('--listen', $address, $certificate), $addresses);
        array_map(
            static fn(string $address) => self::checkAddress('--admin', $address, $certificate),
            $admin === null ? [] : [$admin],
        );
        self::checkThatAdminDiffers($admin, $addresses);
        if ($certificate === null && $given->text('key') !== null) {
            throw new UsageException(
                'option --key: a key needs a certificate; add one, such as --certificate chain.pem',
            );
        }
        if ($certificate !== null && preg_grep('~^tls://~', [...$addresses, (string) $admin]) === []) {
            throw new UsageException(
                'option --certificate: a certificate needs a tls:// address;'
                . ' add one, such as --listen tls://0.0.0.0:443',
            );
        }

        return new self(
            self::app($input),
            $addresses,
            self::supervisor($input, $admin, $certificate),
            $given->logsJson(),
            $given->flag('quiet'),
        );
    }

    private static function checkAddress(string $option, string $address, ?string $certificate): void
    {
        if (preg_match(self::ADDRESS_PATTERN, $address, $match) !== 1) {
            throw UsageException::option($option, $address, 'host:port, [IPv6]:port, tls://host:port or unix:///path');
        }
        if ((int) ($match[1] ?? 0) > self::MAX_PORT) {
            throw UsageException::option($option, $address, 'a port from 0 to ' . self::MAX_PORT);
        }
        if (str_starts_with($address, 'tls://') && $certificate === null) {
            throw new UsageException(
                "option {$option}: '{$address}' needs a certificate; add --certificate chain.pem,"
                . ' and --key key.pem if the key is in another file',
            );
        }
    }

    /** @param list<string> $addresses */
    private static function checkThatAdminDiffers(?string $admin, array $addresses): void
    {
        $withoutTls = static fn(string $address): string => (string) preg_replace('~^tls://~', '', $address);
        // With port 0, the system chooses a free port for each address, so the addresses differ.
        if ($admin === null || preg_match('~:0+$~D', $admin) === 1) {
            return;
        }
        if (\in_array($withoutTls($admin), array_map($withoutTls, $addresses), true)) {
            throw new UsageException(
                "option --admin: '{$admin}' is also an address of --listen; give --admin another port or path",
            );
        }
    }

    private static function app(InputInterface $input): string
    {
        /** @var string $app */
        $app = $input->getArgument('app');
        if (!is_file($app) || !is_readable($app)) {
            throw new UsageException(
                "argument '{$app}': no readable file has this name; give the PHP file that returns the application",
            );
        }

        return $app;
    }

    private static function supervisor(InputInterface $input, ?string $admin, ?string $certificate): SupervisorOptions
    {
        $given = new GivenOptions($input);
        $maxMemoryBytes = self::maxMemory($given);

        return new SupervisorOptions(
            processes: self::processes($given),
            watch: $given->flag('watch'),
            admin: $admin,
            statusPage: $given->flag('status'),
            certificate: $certificate,
            key: $given->text('key'),
            maxRequests: $given->number('max-requests', 'a number of requests, at least 1', 1),
            maxMemoryBytes: $maxMemoryBytes,
            startTimeout: self::seconds($given, 'start-timeout') ?? 30.0,
            blockTimeout: self::seconds($given, 'block-timeout') ?? 30.0,
            adminHosts: AdminHostOption::names($input),
            memoryLimit: self::memoryLimit($given, $maxMemoryBytes),
            traceBlocks: $given->flag('trace-blocks') ? true : null,
        );
    }

    private static function memoryLimit(GivenOptions $given, ?int $maxMemoryBytes): ?string
    {
        $limit = $given->text('memory-limit');
        try {
            new SupervisorOptions(memoryLimit: $limit);
        } catch (\ValueError) {
            throw UsageException::option(
                '--memory-limit',
                (string) $limit,
                'a number of bytes such as 256M, at least 32M, or -1 for no limit',
            );
        }

        return SupervisorOptions::allowsReplacement($maxMemoryBytes, $limit) ? $limit : throw UsageException::option(
            '--memory-limit',
            (string) $limit,
            'more than --max-memory, so that a process is replaced before it reaches the limit',
        );
    }

    private static function processes(GivenOptions $given): ?int
    {
        $number = (int) $given->text('processes');
        $allowed = 'a number from 1 to ' . SupervisorOptions::MAX_PROCESSES
            . '; each process loads the application, and one for each CPU is usually enough'
            . ($number > 1000 && $number <= self::MAX_PORT ? "; to set a port, use --listen 127.0.0.1:{$number}" : '');

        return $given->number('processes', $allowed, 1, SupervisorOptions::MAX_PROCESSES);
    }

    private static function maxMemory(GivenOptions $given): ?int
    {
        $text = $given->text('max-memory');
        if ($text === null) {
            return null;
        }
        $allowed = 'a number of bytes, or a number with K, M or G such as 500M, at least 1M';
        if (preg_match('/^([1-9]\d*)([KMG]?)$/D', $text, $match) !== 1) {
            throw UsageException::option('--max-memory', $text, $allowed);
        }
        $number = filter_var($match[1], \FILTER_VALIDATE_INT);
        $bytesPerUnit = self::UNITS[$match[2]];
        if ($number === false || $number > intdiv(\PHP_INT_MAX, $bytesPerUnit)) {
            throw UsageException::option('--max-memory', $text, 'less than 8589934592G');
        }

        return $number * $bytesPerUnit >= self::UNITS['M']
            ? $number * $bytesPerUnit
            : throw UsageException::option('--max-memory', $text, $allowed);
    }

    private static function seconds(GivenOptions $given, string $name): ?float
    {
        $seconds = $given->duration($name);

        return $seconds !== null && $seconds < self::MIN_SECONDS
            ? throw UsageException::option(
                "--{$name}",
                (string) $given->text($name),
                Duration::FORM . ', at least ' . self::MIN_SECONDS . ' s',
            )
            : $seconds;
    }
}
