<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing\Internal;

use Spindle\Internal\Testing\PrivateDirectory;
use Spindle\Internal\Testing\ServerException;
use Spindle\Postgres\Testing\TemporaryPostgresException;
use Spindle\Postgres\Testing\TemporaryPostgresOptions;

/** Creates the directory of a server: data, configuration and TLS files. */
final class DataDirectory
{
    /**
     * Default settings. Nothing is synced to the disk, because the data need not survive a crash of the machine. The
     * data do survive a kill of the server. Dynamic shared memory is in files of the data directory, so that removing
     * the directory also removes this memory.
     */
    private const SETTINGS = [
        'fsync' => false,
        'full_page_writes' => false,
        'dynamic_shared_memory_type' => 'mmap',
        'timezone' => 'UTC',
        'log_timezone' => 'UTC',
    ];

    private const HBA = [
        'local all all trust',
        'local replication all trust',
        'host all all 127.0.0.1/32 scram-sha-256',
    ];

    private static ?DataSource $source = null;

    public function __construct(private readonly PrivateDirectory $directory, private readonly ServerUser $user) {}

    /**
     * Runs `$work`. Servers that `$work` starts get their data from `$source` instead of initdb.
     *
     * @template T
     *
     * @param \Closure(): T $work
     *
     * @return T
     */
    public static function from(DataSource $source, \Closure $work): mixed
    {
        $before = self::$source;
        self::$source = $source;
        try {
            return $work();
        } finally {
            self::$source = $before;
        }
    }

    /**
     * @param array<string, string|int|float|bool> $settings
     *
     * @return string password of the superuser
     *
     * @throws TemporaryPostgresException|ServerException
     */
    public function create(string $binaries, array $settings, TemporaryPostgresOptions $options): string
    {
        $this->directory->make();
        $this->user->makeOwnerOf($this->directory->path);
        $source = self::$source ?? new Initdb();
        $password = $source->create($this->directory, $this->user, $binaries, $options);
        $settings = [...self::SETTINGS, ...$this->tls($options), ...$settings];
        $this->write('data/postgresql.conf', self::configuration($settings), \FILE_APPEND);
        $this->write('data/pg_hba.conf', implode("\n", [...$options->hba, ...self::HBA]) . "\n");

        return $password;
    }

    /** @return array<string, string|bool> settings for the TLS files, which this method copies */
    private function tls(TemporaryPostgresOptions $options): array
    {
        $settings = ['ssl' => $options->certificate !== null];
        $files = [
            'ssl_cert_file' => $options->certificate,
            'ssl_key_file' => $options->key,
            'ssl_ca_file' => $options->caFile,
        ];
        foreach (array_filter($files, \is_string(...)) as $setting => $file) {
            $settings[$setting] = $this->ownedByServer($this->directory->copy($file, "{$setting}.pem"));
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

    private function write(string $name, string $content, int $flags = 0): string
    {
        return $this->ownedByServer($this->directory->write($name, $content, $flags));
    }

    private function ownedByServer(string $path): string
    {
        $this->user->makeOwnerOf($path);

        return $path;
    }
}
