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

    /** Renewals replace the link. */
    public function testRelativePathsBecomeAbsoluteAndKeepSymbolicLinks(): void
    {
        $this->file('ca-1.pem', '');
        symlink('ca-1.pem', $this->path('ca.pem'));
        $directory = (string) getcwd();
        chdir($this->path());
        try {
            $options = new TlsOptions('ca.pem', 'ca.pem', 'ca.pem');
        } finally {
            chdir($directory);
        }

        $path = realpath($this->path()) . '/ca.pem';
        self::assertSame([$path, $path, $path], [$options->caFile, $options->certificate, $options->key]);
    }

    public function testAKeyWithoutACertificateIsRefused(): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('a private key needs a certificate');
        new TlsOptions(key: $this->file('key.pem', ''));
    }
}
