<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres\Connect;

use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\Connect\PasswordFile;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresOptions;
use Spindle\Tests\OwnDirectory;

final class PasswordFileTest extends TestCase
{
    use OwnDirectory;
    use OwnEnvironment;

    private const CONTENT = <<<'FILE'
        # db:5432:shop:app:comment
        db:5432:shop:app:first
        db:5432:shop:app:second
        db:*:*:other:any\:port\\
        ::2:5432:*:app:two\
        \:\:1:5432:*:app:six
        localhost:*:*:app:local
        /run/own:*:*:app:socket
        short:5432:shop
        empty:*:*:*:
        *:*:wild:*:star
        \*:*:literal:*:never

        FILE;

    public function testTheFirstLineThatFitsGivesThePassword(): void
    {
        $file = $this->file('pgpass', self::CONTENT, 0o600);
        $find = static fn(string $host, string $database = 'shop', string $user = 'app')
            => PasswordFile::find($file, PostgresHost::fromString($host), $database, $user);

        self::assertSame('first', $find('db'));
        self::assertSame('any:port\\', $find('db:7', user: 'other'));
        self::assertSame('six', $find('::1'));
        self::assertSame('two\\', $find('::2')); // libpq accepts this line, too
        self::assertSame('local', $find('localhost'));
        self::assertSame('local', $find('/var/run/postgresql'));
        self::assertSame('socket', $find('/run/own'));
        self::assertSame('local', PasswordFile::find($file, new PostgresHost('/tmp', 1, '10.0.0.1'), 'shop', 'app'));
        self::assertSame('star', $find('anything', 'wild'));
        self::assertNull($find('short'));
        self::assertNull($find('empty'));
        self::assertNull($find('db:5433'));
        self::assertNull($find('anything', 'literal'));
    }

    public function testAFileThatOthersMayReadIsIgnored(): void
    {
        $file = $this->file('pgpass', self::CONTENT, 0o640);

        self::assertFalse(PasswordFile::isPrivate($file));
        self::assertNull(PasswordFile::find($file, PostgresHost::fromString('db'), 'shop', 'app'));
    }

    public function testAMissingFileContainsNoPassword(): void
    {
        self::assertNull(PasswordFile::find($this->path('none'), PostgresHost::fromString('db'), 'shop', 'app'));
    }

    public function testAnExistingFileInTheHomeDirectoryIsUsed(): void
    {
        putenv("HOME={$this->path()}");
        self::assertNull(PostgresOptions::fromDsn('host=db user=u')->passwordFile);

        $file = $this->file('.pgpass', '', 0o600);
        self::assertSame($file, PostgresOptions::fromDsn('host=db user=u')->passwordFile);
    }
}
