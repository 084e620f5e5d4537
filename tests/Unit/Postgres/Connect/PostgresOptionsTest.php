<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres\Connect;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\AuthenticationMethod;
use Spindle\Postgres\ChannelBinding;
use Spindle\Postgres\Internal\Connect\Keywords;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\TargetSessionAttrs;
use Spindle\Postgres\TlsMode;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Scale;

final class PostgresOptionsTest extends TestCase
{
    use CatchesThrown;
    use OwnDirectory;
    use OwnEnvironment;

    private const PASSWORD = 'correct horse';

    /** @return iterable<string, array{string, array<string, mixed>}> */
    public static function dsns(): iterable
    {
        yield 'a URI' => [
            'postgres://app:secret@db:5433/shop',
            ['hosts' => 'db:5433', 'user' => 'app', 'password' => 'secret', 'database' => 'shop'],
        ];
        yield 'the other scheme' => ['postgresql://db', ['hosts' => 'db:5432']];
        yield 'the database is named as the user' => ['postgres://app@db', ['user' => 'app', 'database' => 'app']];
        yield 'percent-encoding' => [
            'postgres://a%40b:p%3Aw%2F%25%3F@db/d%20b',
            ['user' => 'a@b', 'password' => 'p:w/%?', 'database' => 'd b'],
        ];
        yield 'a plus is a plus' => ['postgres://u:a+b@db', ['password' => 'a+b']];
        yield 'hosts' => ['postgres://u@h1:1,h2,h3:3/db', ['hosts' => 'h1:1 h2:5432 h3:3']];
        yield 'IPv6' => ['postgres://u@[::1]:5433,[2001:db8::1]/db', ['hosts' => '[::1]:5433 [2001:db8::1]:5432']];
        yield 'a socket in the place of the host' => [
            'postgres://u@%2Fvar%2Frun/db',
            ['hosts' => '/var/run/.s.PGSQL.5432'],
        ];
        yield 'a socket in the query' => [
            'postgres:///db?host=/tmp&port=6432&user=u',
            ['hosts' => '/tmp/.s.PGSQL.6432', 'database' => 'db', 'user' => 'u'],
        ];
        yield 'the query' => [
            'postgres://u@h/db?sslmode=verify-ca&target_session_attrs=read-write&connect_timeout=3'
                . '&application_name=my%20app&channel_binding=require',
            [
                'tls' => TlsMode::VerifyCa,
                'targetSessionAttrs' => TargetSessionAttrs::ReadWrite,
                'connectTimeout' => 3.0,
                'applicationName' => 'my app',
                'channelBinding' => ChannelBinding::Require,
            ],
        ];
        yield 'the options' => [
            'postgres://u@h?options=-c%20search_path%3Da%2Cb%20--work-mem%3D4MB%20-cx.y%3Da%5C%20b',
            ['settings' => ['search_path' => 'a,b', 'work_mem' => '4MB', 'x.y' => 'a b']],
        ];
        yield 'the encoding' => [
            'postgres://u@h?options=-cclient_encoding%3Dutf-8',
            ['settings' => ['client_encoding' => 'utf-8']],
        ];
        yield 'a long option' => [
            'postgres://u@h?options=-ca.b%3D' . str_repeat('x', 50_000),
            ['settings' => ['a.b' => str_repeat('x', 50_000)]],
        ];
        yield 'no limit of time' => ['postgres://u@h?connect_timeout=0', ['connectTimeout' => \INF]];
        yield 'as JDBC asks for TLS' => ['postgres://u@h?ssl=true', ['tls' => TlsMode::Require]];
        yield 'allow is prefer' => ['postgres://u@h?sslmode=allow', ['tls' => TlsMode::Prefer]];
        foreach (['', '&sslmode=verify-full'] as $mode) {
            yield "the system's authorities{$mode}" => [
                "postgres://u@h?sslrootcert=system{$mode}",
                ['tls' => TlsMode::VerifyFull, 'tlsCaFile' => null],
            ];
        }
        yield 'authentication' => [
            'postgres://u@h?require_auth=md5,password',
            ['authentication' => [AuthenticationMethod::Md5, AuthenticationMethod::Password]],
        ];
        yield 'less authentication' => [
            'postgres://u@h?require_auth=!none,!gss',
            ['authentication' => [AuthenticationMethod::Scram]],
        ];
        yield 'what is done anyway' => [
            'postgres://u@h?client_encoding=UTF8&gssencmode=disable',
            ['hosts' => 'h:5432'],
        ];
        yield 'pairs' => [
            'host=db port=5433 user=app password=secret dbname=shop',
            ['hosts' => 'db:5433', 'user' => 'app', 'password' => 'secret', 'database' => 'shop'],
        ];
        yield 'pairs with quotes' => [
            "user = 'a b' password='it\\'s \\\\' host=db",
            ['user' => 'a b', 'password' => "it's \\", 'hosts' => 'db:5432'],
        ];
        yield 'pairs with a backslash' => ['user=a\ b password=x\\\'y host=db', ['user' => 'a b', 'password' => "x'y"]];
        yield 'an empty value' => ["host=db user=app password='' dbname=", ['password' => null, 'database' => 'app']];
        yield 'lists' => ['host=a,b,c port=1,2,3 user=u', ['hosts' => 'a:1 b:2 c:3']];
        yield 'one port for all' => ['host=a,b port=7 user=u', ['hosts' => 'a:7 b:7']];
        yield 'the default among ports' => ['host=a,b port=7, user=u', ['hosts' => 'a:7 b:5432']];
        yield 'an address beside the name' => [
            'host=db hostaddr=10.0.0.1 user=u',
            ['hosts' => 'db:5432', 'addresses' => ['10.0.0.1']],
        ];
        yield 'an address beside a folder' => [
            'host=/tmp hostaddr=::1 user=u',
            ['hosts' => '/tmp:5432', 'addresses' => ['::1']],
        ];
        yield 'an address alone' => ['hostaddr=10.0.0.1,::1 user=u', ['hosts' => '10.0.0.1:5432 [::1]:5432']];
        yield 'spaces around' => ["  host = db \n user=u  ", ['hosts' => 'db:5432', 'user' => 'u']];
    }

    /** @param array<string, mixed> $expected */
    #[DataProvider('dsns')]
    public function testAConnectionStringIsRead(string $dsn, array $expected): void
    {
        $options = PostgresOptions::fromDsn($dsn);

        $found = [
            ...get_object_vars($options),
            'hosts' => implode(' ', $options->hosts),
            'addresses' => array_map(static fn(PostgresHost $host) => $host->address, $options->hosts),
            'password' => $options->password(),
        ];
        self::assertSame($expected, array_replace($expected, array_intersect_key($found, $expected)));
    }

    /** @return iterable<string, array{string, string}> */
    public static function brokenDsns(): iterable
    {
        $password = rawurlencode(self::PASSWORD);
        yield 'an unknown key' => ["postgres://u:{$password}@h?sslmod=require", "'sslmod'"];
        yield 'an unknown key in a pair' => ["host=h password={$password} nonsense=1", "'nonsense'"];
        yield 'an unknown value' => [
            "postgres://u:{$password}@h?sslmode=strict",
            "'sslmode' must be disable or prefer or require or verify-ca or verify-full, not \"strict\"",
        ];
        yield 'an encoding' => ["postgres://u:{$password}@h?client_encoding=LATIN1", "'client_encoding' must be"];
        yield 'another scheme' => ["mysql://u:{$password}@h", 'begin with postgres://'];
        yield 'a DSN of PDO' => [
            "pgsql:host=h;user=u;password={$password}",
            "neither the prefix 'pgsql:' of PDO nor semicolons. Write pairs with spaces, such as 'host=localhost",
        ];
        yield 'no pair' => ["host=h user=u {$password}", "the text after 'user'"];
        yield 'neither' => [$password, 'neither a URI, such as postgres://app@db.example/shop, nor'];
        yield 'a quote without an end' => ["password='{$password}", 'nor a list of key=value pairs'];
        yield 'a port' => ['postgres://u@h:99999/db', '99999'];
        yield 'port 0' => ['postgres://u@h:0/db', 'not 0'];
        yield 'a port of letters' => ["postgres://u:{$password}@h:x/db", 'is malformed'];
        yield 'broken percent-encoding' => [
            "postgres://u:{$password}%2@h",
            "'password' has an invalid percent-encoding",
        ];
        yield 'an encoded NUL' => ["postgres://u:{$password}%00@h", "'password' has an invalid percent-encoding"];
        yield 'a NUL' => ["host=h password={$password}\0", 'NUL'];
        yield 'a slash in the password' => ["postgres://u:{$password}/@h", "'/', '?', '@', ':' and '#'"];
        yield 'a slash in a password of digits' => ['postgres://u:12/34@h/db', "'/', '?', '@', ':' and '#'"];
        yield 'an at in the password' => ["postgres://u:{$password}@x@h", '%40'];
        yield 'a hash in the password' => ["postgres://u:x@{$password}#h", 'must be a name'];
        yield 'a hash in the host' => ['postgres://u:x@y#h', "not contain '@', '/', '?', '#'"];
        yield 'lists of two lengths' => ['host=a,b,c port=1,2 user=u', 'the same length'];
        yield 'a timeout' => ['host=a user=u connect_timeout=soon', '"soon"'];
        yield 'an option that is no setting' => ['host=a user=u options=-d5', '"-d5"'];
        yield 'a query without value' => ["postgres://u:{$password}@h?sslmode", 'key=value'];
        yield 'two lists of authentication' => ['host=a user=u require_auth=md5,!none', 'not both'];
        yield 'GSSAPI' => ['host=a user=u require_auth=gss', '"gss"'];
        foreach (['require', 'verify-ca', 'allow'] as $mode) {
            yield "the system's authorities without a name: {$mode}" => [
                "host=a user=u sslrootcert=system sslmode={$mode}",
                "'sslmode' must be verify-full",
            ];
        }
        yield 'a certificate that is not there' => ['host=a user=u sslrootcert=/not/there', "'/not/there'"];
    }

    #[DataProvider('brokenDsns')]
    public function testAMalformedDsnIsReportedWithoutThePassword(string $dsn, string $message): void
    {
        $error = self::thrown(\ValueError::class, static fn() => PostgresOptions::fromDsn($dsn));
        self::assertStringContainsString($message, $error->getMessage());
        self::assertStringNotContainsString(rawurlencode(self::PASSWORD), (string) $error);
        self::assertStringNotContainsString(self::PASSWORD, (string) $error);
        self::assertStringNotContainsString(self::PASSWORD, rawurldecode(print_r(self::frames($error), true)));
    }

    public function testWhatIsMissingComesFromTheEnvironment(): void
    {
        $file = $this->file('pem', '');
        foreach ([
            'PGHOST=h1,h2', 'PGPORT=7', 'PGUSER=app', 'PGPASSWORD=secret', 'PGDATABASE=shop', 'PGSSLMODE=require',
            "PGSSLROOTCERT={$file}", "PGSSLCERT={$file}",
            "PGSSLKEY={$file}", 'PGCONNECT_TIMEOUT=2', 'PGTARGETSESSIONATTRS=standby', 'PGAPPNAME=me',
            'PGOPTIONS=-c a=b', 'PGCHANNELBINDING=disable', 'PGREQUIREAUTH=md5',
            "PGPASSFILE={$file}",
        ] as $variable) {
            putenv($variable);
        }

        $options = PostgresOptions::fromDsn('');

        self::assertSame('h1:7 h2:7', implode(' ', $options->hosts));
        self::assertSame(
            ['app', 'secret', 'shop', 2.0, 'me'],
            [
                $options->user,
                $options->password(),
                $options->database,
                $options->connectTimeout,
                $options->applicationName,
            ],
        );
        self::assertSame(
            [TlsMode::Require, TargetSessionAttrs::Standby, ChannelBinding::Disable],
            [$options->tls, $options->targetSessionAttrs, $options->channelBinding],
        );
        self::assertSame(
            [$file, $file, $file, $file],
            [$options->tlsCaFile, $options->tlsCertificate, $options->tlsKey, $options->passwordFile],
        );
        self::assertSame([['a' => 'b'], [AuthenticationMethod::Md5]], [$options->settings, $options->authentication]);
    }

    public function testTheDocumentedVariablesAreThoseThatAreRead(): void
    {
        $variables = (new \ReflectionClassConstant(Keywords::class, 'ENVIRONMENT_VARIABLES'))->getValue();
        self::assertIsArray($variables);
        $page = (string) file_get_contents(\dirname(__DIR__, 4) . '/docs/reference/postgresql.md');
        $docblock = (string) (new \ReflectionMethod(PostgresOptions::class, 'fromDsn'))->getDocComment();
        foreach ([$page, $docblock] as $text) {
            self::assertSame(1, preg_match('~PGHOST\W+PGHOSTADDR.*? and `?PG[A-Z_]+~s', $text, $list));
            preg_match_all('~PG[A-Z_]+~', $list[0], $names);
            self::assertSame(array_values($variables), $names[0]);
        }
    }

    public function testAConnectionStringGoesBeforeTheEnvironment(): void
    {
        putenv('PGHOST=elsewhere');
        putenv('PGHOSTADDR=10.9.9.9');
        putenv('PGPASSWORD=other');
        putenv('PGPORT=7');

        $options = PostgresOptions::fromDsn('host=db user=u password=mine');

        self::assertSame(
            ['db:7', null, 'mine'],
            [(string) $options->hosts[0], $options->hosts[0]->address, $options->password()],
        );
    }

    public function testHostAndAddressOfTheEnvironmentBelongTogether(): void
    {
        putenv('PGHOST=db');
        putenv('PGHOSTADDR=10.0.0.1');

        self::assertSame(
            ['db', '10.0.0.1'],
            [PostgresOptions::fromDsn('user=u')->hosts[0]->host, PostgresOptions::fromDsn('user=u')->hosts[0]->address],
        );
    }

    public function testAServiceIsNotPassedOverInSilence(): void
    {
        putenv('PGSERVICE=shop');
        self::assertSame('db:5432', (string) PostgresOptions::fromDsn('host=db user=u')->hosts[0]);

        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('PGSERVICE');
        PostgresOptions::fromDsn('user=u');
    }

    public function testWithoutAHostItIsTheSocketOfThisMachinesServer(): void
    {
        $host = (new PostgresOptions(user: 'u'))->hosts[0];

        self::assertContains($host->host, ['/var/run/postgresql', '/tmp']);
        self::assertSame("{$host->host}/.s.PGSQL.7", (string) PostgresOptions::fromDsn('user=u port=7')->hosts[0]);
    }

    public function testTheUserIsTheOperatingSystemsOne(): void
    {
        $name = posix_getpwuid(posix_geteuid())['name'] ?? null;

        self::assertSame(
            [$name, $name],
            [PostgresOptions::fromDsn('host=db')->user, PostgresOptions::fromDsn('host=db')->database],
        );
    }

    public function testThePasswordIsShownNowhere(): void
    {
        $options = PostgresOptions::fromDsn('postgres://u:' . rawurlencode(self::PASSWORD) . '@h')->with(
            ['password' => self::PASSWORD, 'connectTimeout' => 1.0],
        );

        $shown = print_r($options, true)
            . var_export($options, true)
            . json_encode($options)
            . print_r((array) $options, true)
            . print_r(get_object_vars($options), true);
        ob_start();
        var_dump($options);
        $shown .= ob_get_clean();

        self::assertSame(self::PASSWORD, $options->password());
        self::assertStringNotContainsString(self::PASSWORD, $shown);
    }

    public function testOptionsAreNotSerialized(): void
    {
        $this->expectException(\Exception::class);
        $this->expectExceptionMessage('not allowed');
        serialize(new PostgresOptions('db', 'u', 'secret'));
    }

    public function testACopyHasOtherValues(): void
    {
        $options = new PostgresOptions('db', 'u', self::PASSWORD, 'shop', statementCache: 0);

        $copy = $options->with(['user' => 'v', 'hosts' => 'a,b:7', 'persistent' => true]);

        self::assertSame(
            ['v', 'shop', self::PASSWORD, 0, true],
            [$copy->user, $copy->database, $copy->password(), $copy->statementCache, $copy->persistent],
        );
        self::assertSame(['a:5432 b:7', 'u'], [implode(' ', $copy->hosts), $options->user]);
    }

    #[TestWith(['databse', '/^PostgresOptions has no option \'databse\'\. Its options are: .*, database, .*, json$/'])]
    #[TestWith(['port', '/^PostgresOptions has no option \'port\'\. .*\. Write \'hosts\' => \'db\.example:5432\'$/'])]
    public function testACopyHasNoValuesOfUnknownNames(string $name, string $message): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessageMatches($message);
        (new PostgresOptions(user: 'u'))->with([$name => self::PASSWORD]);
    }

    public function testAValueThatACopyRefusesIsNotShownWithThePassword(): void
    {
        try {
            (new PostgresOptions(user: 'u'))->with(['password' => self::PASSWORD, 'connectTimeout' => -1.0]);
            self::fail('It was taken');
        } catch (\ValueError $error) {
            self::assertStringNotContainsString(
                self::PASSWORD,
                $error->getMessage() . print_r(self::frames($error), true),
            );
        }
    }

    public function testNothingButAValueErrorComesOfRandomText(): void
    {
        mt_srand(Scale::seed());
        $valid = [
            'postgres://u:p%20w@h1:5432,[::1]/db?sslmode=require&options=-c%20a%3Db',
            "host=a,b port=1 user='x \\' y' options='-c a=b'",
        ];
        for ($i = 0; $i < 3000; ++$i) {
            $text = $valid[$i % 2];
            for ($change = mt_rand(1, 6); $change > 0; --$change) {
                $text[mt_rand(0, \strlen($text) - 1)] = mt_rand(0, 3) === 0
                    ? \chr(mt_rand(0, 255))
                    : "@:/?&=%'\\ ,[]#"[mt_rand(0, 13)];
            }
            try {
                PostgresOptions::fromDsn($text);
            } catch (\ValueError) {
            }
        }
        $this->addToAssertionCount(1);
    }

    /** @return iterable<string, array{\Closure(): PostgresOptions, string}> */
    public static function outOfRange(): iterable
    {
        yield 'connectTimeout 0' => [
            static fn() => new PostgresOptions(user: 'u', connectTimeout: 0.0),
            'connectTimeout must be more than 0',
        ];
        yield 'a connectTimeout that is no number' => [
            static fn() => new PostgresOptions(user: 'u', connectTimeout: \NAN),
            'connectTimeout must be more than 0',
        ];
        yield 'statementTimeout 0' => [
            static fn() => new PostgresOptions(user: 'u', statementTimeout: 0.0),
            'statementTimeout must be more than 0',
        ];
        yield 'a statementTimeout beyond the server' => [
            static fn() => new PostgresOptions(user: 'u', statementTimeout: \INF),
            'statementTimeout must be at most',
        ];
        yield 'readTimeout below 0' => [
            static fn() => new PostgresOptions(user: 'u', readTimeout: -1.0),
            'readTimeout must be more than 0',
        ];
        yield 'statementCache below 0' => [
            static fn() => new PostgresOptions(user: 'u', statementCache: -1),
            'statementCache must be 0 or more',
        ];
        yield 'no user' => [static fn() => new PostgresOptions(user: ''), 'user must not be empty'];
        yield 'no database' => [
            static fn() => new PostgresOptions(user: 'u', database: ''),
            'database must not be empty',
        ];
        yield 'a NUL in the user' => [static fn() => new PostgresOptions(user: "u\0v"), 'user must not contain NUL'];
        yield 'a NUL in a setting' => [
            static fn() => new PostgresOptions(user: 'u', settings: ['a' => "\0"]),
            'a must not contain NUL',
        ];
        yield 'a name that is no setting' => [
            static fn() => new PostgresOptions(user: 'u', settings: ["a'b" => '']),
            "must be names of PostgreSQL settings, not \"a'b\"",
        ];
        yield 'another encoding' => [
            static fn() => PostgresOptions::fromDsn('user=u host=h options=--Client-Encoding=LATIN1'),
            'client_encoding must be UTF8',
        ];
        yield 'no authentication at all' => [
            static fn() => new PostgresOptions(user: 'u', authentication: []),
            'at least',
        ];
        yield 'a key without a certificate' => [
            static fn() => new PostgresOptions(user: 'u', tlsKey: __FILE__),
            'tlsKey needs',
        ];
        yield 'a certificate that is not there' => [
            static fn() => new PostgresOptions(user: 'u', tlsCertificate: '/not/there'),
            'tlsCertificate does not exist',
        ];
        yield 'a host that is empty' => [static fn() => new PostgresOptions([''], user: 'u'), 'must be a name'];
        yield 'a host with a space' => [static fn() => new PostgresOptions('a b', user: 'u'), 'must be a name'];
        yield 'a host with a port twice' => [
            static fn() => new PostgresOptions('a:1:2', user: 'u'),
            'the form host or host:port',
        ];
        yield 'an address that is none' => [
            static fn() => new PostgresOptions([new PostgresHost('db', address: 'db')], user: 'u'),
            'must be an IP address',
        ];
    }

    /** @param \Closure(): PostgresOptions $make */
    #[DataProvider('outOfRange')]
    public function testWhatIsOutOfItsRangeIsRefusedByName(\Closure $make, string $message): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($message);
        $make();
    }

    /** @return iterable<string, array{string, TlsMode}> */
    public static function tlsModes(): iterable
    {
        yield 'far away' => ['host=db', TlsMode::VerifyFull];
        yield 'an address far away' => ['host=10.0.0.1', TlsMode::VerifyFull];
        yield 'a name that says so' => ['host=localhost.example', TlsMode::VerifyFull];
        yield 'a name that leads far away' => ['host=localhost hostaddr=10.0.0.1', TlsMode::VerifyFull];
        yield 'localhost' => ['host=localhost', TlsMode::Prefer];
        yield 'loopback' => ['host=127.0.0.2', TlsMode::Prefer];
        yield 'loopback by IPv6' => ['host=::1', TlsMode::Prefer];
        yield 'a socket' => ['host=/tmp sslmode=require', TlsMode::Disable];
        yield 'a folder with an address on this machine' => ['host=/tmp hostaddr=127.0.0.1', TlsMode::Prefer];
        yield 'a folder with an address far away' => ['host=/tmp hostaddr=10.0.0.1', TlsMode::VerifyFull];
        yield 'what was asked for' => ['host=db sslmode=disable', TlsMode::Disable];
        yield 'authorities on this machine' => ['host=localhost sslrootcert=' . __FILE__, TlsMode::VerifyFull];
        yield 'authorities that must be asked' => [
            'host=db sslmode=require sslrootcert=' . __FILE__,
            TlsMode::VerifyCa,
        ];
    }

    public function testRelativePathsBecomeAbsolute(): void
    {
        $this->file('app.pem', '');
        $directory = (string) getcwd();
        chdir($this->path());
        try {
            $options = PostgresOptions::fromDsn(
                'host=db sslrootcert=app.pem sslcert=app.pem sslkey=app.pem passfile=app.pem',
            );
        } finally {
            chdir($directory);
        }

        self::assertSame(
            array_fill(0, 4, realpath($this->path()) . '/app.pem'),
            [$options->tlsCaFile, $options->tlsCertificate, $options->tlsKey, $options->passwordFile],
        );
        self::assertEquals($options, $options->with([]));
    }

    #[DataProvider('tlsModes')]
    public function testEveryServerIsVerifiedUnlessItIsOnThisMachine(string $dsn, TlsMode $mode): void
    {
        $options = PostgresOptions::fromDsn("user=u {$dsn}");

        self::assertSame($mode, $options->tlsFor($options->hosts[0]));
    }

    /** @return list<array<string, mixed>> frames of the library */
    private static function frames(\Throwable $error): array
    {
        $frames = [];
        foreach ($error->getTrace() as $frame) {
            if (($frame['class'] ?? '') === self::class) {
                break;
            }
            $frames[] = $frame;
        }

        return $frames;
    }
}
