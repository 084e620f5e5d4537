<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing\Internal;

use Spindle\Postgres\Testing\ClusterException;
use Spindle\Postgres\Testing\TemporaryClusterOptions;

/** Makes the directory of a cluster: its data, its configuration, what TLS needs. */
final class DataDirectory
{
    /**
     * Nothing of it outlives the machine, so nothing needs to reach the disk; what a server that was killed had
     * committed is there nevertheless. Shared memory in files goes with the directory, whoever is killed.
     */
    private const SETTINGS = [
        'fsync' => false,
        'full_page_writes' => false,
        'dynamic_shared_memory_type' => 'mmap',
        'timezone' => 'UTC',
        'log_timezone' => 'UTC',
    ];

    private const HBA = ['local all all trust', 'local replication all trust', 'host all all 127.0.0.1/32 scram-sha-256'];

    public function __construct(private readonly string $directory, private readonly ServerUser $user) {}

    /**
     * @param array<string, string|int|float|bool> $settings
     *
     * @throws ClusterException
     */
    public function make(string $binaries, #[\SensitiveParameter] string $password, array $settings, TemporaryClusterOptions $options): void
    {
        error_clear_last();
        if (!@mkdir($this->directory, 0o700)) {
            throw ClusterException::cannotDo("The directory {$this->directory} can't be made", error_get_last()['message'] ?? 'mkdir failed');
        }
        $this->user->own($this->directory);
        $this->runInitdb($binaries, $password, $options);
        $this->write('data/postgresql.conf', self::configuration([...self::SETTINGS, ...$this->tls($options), ...$settings]), \FILE_APPEND);
        $this->write('data/pg_hba.conf', implode("\n", [...$options->hba, ...self::HBA]) . "\n");
    }

    private function runInitdb(string $binaries, string $password, TemporaryClusterOptions $options): void
    {
        $this->write('password', $password);
        [$exitCode, $output] = Program::run($this->user->command([
            "{$binaries}/initdb", '--pgdata', "{$this->directory}/data", '--no-sync', '--no-instructions', '--encoding', 'UTF8',
            '--locale', 'C', '--auth', 'trust', '--username', $options->user, '--pwfile', "{$this->directory}/password", ...$options->initdb,
        ]));
        unlink("{$this->directory}/password");
        if ($exitCode !== 0) {
            throw ClusterException::initdbFailed($exitCode, $output);
        }
    }

    /** @return array<string, string|bool> */
    private function tls(TemporaryClusterOptions $options): array
    {
        $settings = ['ssl' => $options->certificate !== null];
        $files = ['ssl_cert_file' => $options->certificate, 'ssl_key_file' => $options->key, 'ssl_ca_file' => $options->authority];
        foreach (array_filter($files, \is_string(...)) as $setting => $file) {
            error_clear_last();
            $content = @file_get_contents($file);
            if ($content === false) {
                throw ClusterException::cannotDo("The file {$file} can't be read", error_get_last()['message'] ?? '');
            }
            $this->write("{$setting}.pem", $content);
            $settings[$setting] = "{$this->directory}/{$setting}.pem";
        }

        return $settings;
    }

    /** @param array<string, string|int|float|bool> $settings */
    private static function configuration(array $settings): string
    {
        $lines = '';
        foreach ($settings as $name => $value) {
            $text = \is_bool($value) ? ($value ? 'on' : 'off') : (string) $value;
            $lines .= "{$name} = '" . strtr($text, ["'" => "''", '\\' => '\\\\']) . "'\n";
        }

        return $lines;
    }

    /** Readable by the server's user only. */
    private function write(string $name, #[\SensitiveParameter] string $content, int $flags = 0): void
    {
        $path = "{$this->directory}/{$name}";
        $mask = umask(0o077);
        error_clear_last();
        $written = @file_put_contents($path, $content, $flags);
        umask($mask);
        if ($written !== \strlen($content)) {
            throw ClusterException::cannotDo("{$path} can't be written", error_get_last()['message'] ?? 'is the disk full?');
        }
        $this->user->own($path);
    }
}
