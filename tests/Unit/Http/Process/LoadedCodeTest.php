<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Process;

use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Process\LoadedCode;
use Spindle\Internal\Launcher\HelperCode;

final class LoadedCodeTest extends TestCase
{
    public function testAnIncludedFileThatIsNotRegularIsNotReadAgain(): void
    {
        stream_wrapper_register('once', OnceReadable::class);
        try {
            self::assertSame('included', include 'once://file'); // @phpstan-ignore include.fileNotFound
            $code = new LoadedCode();
        } finally {
            stream_wrapper_unregister('once');
        }

        self::assertSame(1, OnceReadable::$openCount);
        self::assertNull($code->changed('once://'));
    }

    public function testAllFilesOfSpindleAreRecorded(): void
    {
        $source = \dirname(__DIR__, 4) . '/src';
        $files = new \RecursiveIteratorIterator(
            new \RecursiveDirectoryIterator($source, \FilesystemIterator::SKIP_DOTS),
        );
        $expected = array_keys(iterator_to_array($files));
        $recorded = HelperCode::filesOf($source);
        sort($expected);
        sort($recorded);

        self::assertSame($expected, $recorded);
    }

    public function testAFileThatIsLoadedLaterIsCheckedFromThenOn(): void
    {
        $file = (string) tempnam(sys_get_temp_dir(), 'spindle-');
        try {
            $code = new LoadedCode();
            include $file;
            $code->recordLoaded();
            self::assertNull($code->changed());
            file_put_contents($file, 'changed');

            self::assertSame($file, $code->changed());
        } finally {
            unlink($file);
        }
    }
}
