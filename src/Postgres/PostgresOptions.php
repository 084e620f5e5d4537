<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Psr\Log\LoggerInterface;
use Spindle\Internal\NumberRange;
use Spindle\Internal\Warnings;
use Spindle\Internal\WorkingDirectory;
use Spindle\Postgres\Internal\Connect\ConnectionString;
use Spindle\Postgres\Internal\Connect\Keywords;
use Spindle\Postgres\Internal\SizeLimits;

/**
 * Options of connections: the server, the user, limits and session settings.
 *
 * Neither var_dump() nor stack traces show the password. Options with a password can't be serialized.
 */
final readonly class PostgresOptions
{
    /** Default directories of the Unix socket: that of most distributions, then that of PostgreSQL's own builds. */
    private const SOCKET_FOLDERS = ['/var/run/postgresql', '/tmp'];

    /** @var non-empty-list<PostgresHost> */
    public array $hosts;

    public string $user;

    public string $database;

    public ?string $tlsCaFile;

    public ?string $tlsCertificate;

    public ?string $tlsKey;

    public ?string $passwordFile;

    private ?\SensitiveParameterValue $password;

    /**
     * Creates options. Unlike {@see fromDsn()}, the constructor does not read libpq's environment variables.
     *
     * @param string|list<PostgresHost|string> $hosts hosts in the order of attempts: a list, or "db1,db2:5433"; empty
     *     for the Unix socket of this machine
     * @param string|null $user null for the operating system's user
     * @param string|\SensitiveParameterValue|null $password null for the password in the password file, if any
     * @param string|null $database null for the user's name
     * @param TlsMode|null $tls null for {@see TlsMode::VerifyFull}. If `$tlsCaFile` is null too, the mode for localhost
     *     and loopback addresses is {@see TlsMode::Prefer} instead
     * @param string|null $tlsCaFile PEM file of the trusted certificate authorities; null for the system's
     * @param string|null $tlsCertificate PEM file of the client's certificate
     * @param string|null $tlsKey PEM file of the client's private key, without a passphrase; null for the file of
     *     `$tlsCertificate`
     * @param TargetSessionAttrs $targetSessionAttrs required kind of session, such as read-write; a host with another
     *     kind is skipped
     * @param float $connectTimeout maximum seconds for DNS, TCP, TLS and login of all hosts together; INF for no limit
     * @param float|null $statementTimeout seconds until the server stops a statement; null for the server's setting.
     *     Behind a pooler, set statement_timeout for the role instead: see `$settings`
     * @param float|null $readTimeout maximum seconds without a byte from the server while an answer is due; null for no
     *     limit. After that, the connection counts as lost. Connections of listen() send a ping at this interval,
     *     so that an answer is due
     * @param string $applicationName name shown in pg_stat_activity
     * @param array<string, string> $settings PostgreSQL settings of the session, by name. Behind a pooler that shares
     *     a session among clients, such as PgBouncer, settings would also affect other clients. So set them for the
     *     role instead (ALTER ROLE … SET)
     * @param list<AuthenticationMethod> $authentication allowed methods; Md5 and Password must be listed explicitly
     * @param int|null $statementCache maximum number of prepared statements per connection; null for 256, or for 0 if
     *     the client detects a pooler. A statement of more than 16 KiB is not kept prepared
     * @param string|null $passwordFile file in the format of .pgpass; ignored if other users have access, as in libpq
     * @param LoggerInterface|null $logger gets warnings. At debug level, also gets each statement and each step of
     *     a connection, such as its opening and its end. Never gets parameters or the password
     * @param bool $persistent whether later HTTP requests in the same PHP-FPM process reuse the connection if their
     *     options are equal
     * @param int|null $maxRowBytes maximum bytes of a row that is read into memory, at least 1 MiB; null for a
     *     quarter of memory_limit. A larger row causes a {@see ResultTooLargeException}
     * @param JsonMode $json PHP types for values of json and jsonb
     *
     * @throws \ValueError when a value is out of its range, or a file does not exist
     */
    public function __construct(
        string|array $hosts = [],
        ?string $user = null,
        #[\SensitiveParameter]
        string|\SensitiveParameterValue|null $password = null,
        ?string $database = null,
        public ?TlsMode $tls = null,
        ?string $tlsCaFile = null,
        ?string $tlsCertificate = null,
        ?string $tlsKey = null,
        public TargetSessionAttrs $targetSessionAttrs = TargetSessionAttrs::Any,
        public float $connectTimeout = 10.0,
        public ?float $statementTimeout = null,
        public ?float $readTimeout = null,
        public string $applicationName = '',
        public array $settings = [],
        public array $authentication = [AuthenticationMethod::None, AuthenticationMethod::Scram],
        public ChannelBinding $channelBinding = ChannelBinding::Prefer,
        public ?int $statementCache = null,
        ?string $passwordFile = null,
        public ?LoggerInterface $logger = null,
        public bool $persistent = false,
        public ?int $maxRowBytes = null,
        public JsonMode $json = JsonMode::Arrays,
    ) {
        $this->hosts = self::hosts(
            \is_string($hosts)
                ? array_filter(explode(',', $hosts), static fn(string $host): bool => $host !== '')
                : $hosts,
        );
        $this->user = $user ?? self::systemUser();
        $this->database = $database ?? $this->user;
        $this->password = \is_string($password) ? new \SensitiveParameterValue($password) : $password;
        // The paths become absolute, because each connection reads the files, and the working directory may change.
        $this->tlsCaFile = WorkingDirectory::absolute($tlsCaFile);
        $this->tlsCertificate = WorkingDirectory::absolute($tlsCertificate);
        $this->tlsKey = WorkingDirectory::absolute($tlsKey);
        $this->passwordFile = WorkingDirectory::absolute($passwordFile);
        $this->checkTexts();
        $this->checkNumbers();
        $this->checkFiles();
    }

    /**
     * Parses a DSN in one of libpq's two forms: "postgres://user:password@host:5432/database?sslmode=verify-full" or
     * "host=… dbname=…".
     *
     * Values that the DSN does not contain come from libpq's environment variables: PGHOST, PGHOSTADDR, PGPORT, PGUSER,
     * PGPASSWORD, PGPASSFILE (default: ~/.pgpass), PGDATABASE, PGSSLMODE, PGSSLROOTCERT, PGSSLCERT, PGSSLKEY,
     * PGCONNECT_TIMEOUT, PGTARGETSESSIONATTRS, PGAPPNAME, PGOPTIONS, PGCHANNELBINDING and PGREQUIREAUTH.
     *
     * The main differences from libpq are: Service files and ~/.postgresql are not read. The connect_timeout limits the
     * time for all hosts together. Certificates of remote servers are checked by default.
     *
     * @throws \ValueError when the DSN or an environment variable is invalid; the message never contains the password
     */
    public static function fromDsn(#[\SensitiveParameter] string $dsn): self
    {
        return Keywords::options(ConnectionString::parse($dsn));
    }

    /**
     * Returns a copy with changed values: with(['statementTimeout' => 5.0]).
     *
     * @param array<string, mixed> $changes values by the names of the constructor's parameters
     *
     * @throws \ValueError when a name is unknown or a value is out of its range
     */
    public function with(#[\SensitiveParameter] array $changes): self
    {
        $values = get_object_vars($this);
        foreach ($changes as $name => $value) {
            if (!\array_key_exists($name, $values)) {
                throw new \ValueError(
                    "PostgresOptions has no option '{$name}'. Its options are: " . implode(', ', array_keys($values))
                        . (\in_array($name, ['host', 'port'], true) ? ". Write 'hosts' => 'db.example:5432'" : ''),
                );
            }
            // The password is wrapped here. Otherwise, the stack trace of the constructor's exception would show it.
            $values[$name] = $name === 'password' && \is_string($value) ? new \SensitiveParameterValue($value) : $value;
        }

        return (new \ReflectionClass(self::class))->newInstanceArgs($values);
    }

    /** Returns the password; null when none was given. Does not read the password file. */
    public function password(): ?string
    {
        $password = $this->password?->getValue();

        return \is_string($password) ? $password : null;
    }

    /** Returns the TLS mode for a host, which depends on {@see $tls}, {@see $tlsCaFile} and the host. */
    public function tlsFor(PostgresHost $host): TlsMode
    {
        return match (true) {
            $host->isSocket() => TlsMode::Disable,
            // As in libpq, the mode Require checks the certificate only if authorities are configured.
            $this->tls === TlsMode::Require && $this->tlsCaFile !== null => TlsMode::VerifyCa,
            $this->tls !== null => $this->tls,
            $host->isLocal() && $this->tlsCaFile === null => TlsMode::Prefer,
            default => TlsMode::VerifyFull,
        };
    }

    /**
     * @param array<PostgresHost|string> $hosts
     *
     * @return non-empty-list<PostgresHost>
     */
    private static function hosts(#[\SensitiveParameter] array $hosts): array
    {
        $list = [];
        foreach ($hosts as $host) {
            $list[] = \is_string($host) ? PostgresHost::fromString(trim($host)) : $host;
        }

        return $list !== [] ? $list : [new PostgresHost(self::socketFolder())];
    }

    private static function socketFolder(): string
    {
        [$first, $second] = self::SOCKET_FOLDERS;

        return Warnings::suppressed(static fn(): bool => is_dir($first)) ? $first : $second;
    }

    private static function systemUser(): string
    {
        $user = \function_exists('posix_getpwuid') ? posix_getpwuid(posix_geteuid()) : false;
        $name = $user !== false ? $user['name'] : getenv('USER');
        if (!\is_string($name) || $name === '') {
            throw new \ValueError('The name of the current operating system user is unknown. Set the option user');
        }

        return $name;
    }

    private function checkTexts(): void
    {
        foreach (['user' => $this->user, 'database' => $this->database] as $name => $value) {
            if ($value === '') {
                throw new \ValueError("The option {$name} must not be empty");
            }
        }
        $texts = [
            'user' => $this->user,
            'database' => $this->database,
            'password' => $this->password() ?? '',
            'applicationName' => $this->applicationName,
        ];
        foreach ([...$texts, ...$this->settings] as $name => $value) {
            if (str_contains($value, "\0")) {
                throw new \ValueError("The option {$name} must not contain NUL bytes");
            }
        }
        foreach ($this->settings as $name => $value) {
            $isEncoding = strcasecmp("{$name}", 'client_encoding') === 0;
            if ($isEncoding && preg_match('~^(?:utf-?8|un[iI]code)$~iD', $value) !== 1) {
                throw new \ValueError(
                    'The setting client_encoding must be UTF8, because the client sends and reads UTF-8 only',
                );
            }
            if (preg_match('~^[A-Za-z_][A-Za-z0-9_$]*(?:\.[A-Za-z_][A-Za-z0-9_$]*)*$~D', "{$name}") !== 1) {
                throw new \ValueError(
                    'The keys of the option settings must be names of PostgreSQL settings, not '
                        . json_encode($name, \JSON_INVALID_UTF8_SUBSTITUTE),
                );
            }
        }
    }

    private function checkNumbers(): void
    {
        NumberRange::checkTimeLimits([
            'connectTimeout' => $this->connectTimeout,
            'statementTimeout' => $this->statementTimeout,
            'readTimeout' => $this->readTimeout,
        ]);
        // PostgreSQL stores statement_timeout as milliseconds in a signed 32-bit integer.
        if ($this->statementTimeout !== null && $this->statementTimeout > 2_147_483) {
            throw new \ValueError(
                'The option statementTimeout must be at most 2147483 seconds, or null for the setting of the server',
            );
        }
        if ($this->statementCache !== null && $this->statementCache < 0) {
            throw new \ValueError("The option statementCache must be 0 or more, not {$this->statementCache}");
        }
        if ($this->maxRowBytes !== null && $this->maxRowBytes < SizeLimits::MIN_BYTES) {
            throw new \ValueError(
                'The option maxRowBytes must be at least ' . SizeLimits::MIN_BYTES . ", not {$this->maxRowBytes}",
            );
        }
        if ($this->authentication === []) {
            throw new \ValueError('The option authentication must name at least one method');
        }
    }

    private function checkFiles(): void
    {
        foreach ([
            'tlsCaFile' => $this->tlsCaFile,
            'tlsCertificate' => $this->tlsCertificate,
            'tlsKey' => $this->tlsKey,
        ] as $name => $file) {
            if ($file !== null && !is_file($file)) {
                throw new \ValueError("The file '{$file}' of the option {$name} does not exist");
            }
        }
        if ($this->tlsKey !== null && $this->tlsCertificate === null) {
            throw new \ValueError('The option tlsKey needs the option tlsCertificate');
        }
    }
}
