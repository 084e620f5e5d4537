<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit;

use PHPUnit\Framework\TestCase;
use Spindle\Tests\OwnDirectory;
use Spindle\TlsOptions;

final class TlsOptionsTest extends TestCase
{
    use OwnDirectory;

    public function testAFileThatCannotBeReadIsNamedAtOnce(): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage("caFile: can't read the file '{$this->path('missing.pem')}'");
        new TlsOptions($this->path('missing.pem'));
    }

    public function testAKeyWithoutACertificateIsRefused(): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('a private key needs a certificate');
        new TlsOptions(key: $this->file('key.pem', ''));
    }
}
