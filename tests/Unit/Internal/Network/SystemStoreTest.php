<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Network;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\Network\SystemStore;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;

#[RequiresPhpExtension('openssl')]
final class SystemStoreTest extends TestCase
{
    use OwnDirectory;

    public function testTheSystemsFolderIsUsedOnlyIfItIsComplete(): void
    {
        $certificates = [(new Certificates($this->path()))->authority, (new Certificates($this->path()))->authority];
        $file = $this->file('all.crt', file_get_contents($certificates[0]) . file_get_contents($certificates[1]));

        self::assertFalse(SystemStore::isComplete($this->path(), $file));
        copy($certificates[0], $this->path('0a1b2c3d.0'));
        self::assertFalse(SystemStore::isComplete($this->path(), $file));
        copy($certificates[1], $this->path('0a1b2c3d.1'));
        self::assertTrue(SystemStore::isComplete($this->path(), $file));
    }
}
