<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Process;

use Composer\Autoload\ClassLoader;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Process\FreshCode;
use Spindle\Tests\OwnDirectory;

final class FreshCodeTest extends TestCase
{
    use OwnDirectory;

    public function testClassesThatComposerHasAddedToALoadedAutoloaderAreFound(): void
    {
        $loader = new ClassLoader($this->path());
        $loader->register();
        try {
            mkdir($this->path('composer'));
            $this->file('composer/autoload_classmap.php', '<?php return ["Mapped" => "/mapped.php"];');
            $this->file('composer/autoload_psr4.php', '<?php return ["Added\\\\" => [__DIR__ . "/../added"]];');
            mkdir($this->path('added'));
            $this->file('added/Thing.php', '<?php');
            self::assertSame([false, false], [$loader->findFile('Mapped'), $loader->findFile('Added\Other')]);

            FreshCode::clearCaches();

            self::assertSame(
                ['/mapped.php', $this->path('composer/../added/Thing.php')],
                [$loader->findFile('Mapped'), $loader->findFile('Added\Thing')],
            );
        } finally {
            $loader->unregister();
        }
    }

    public function testAnAutoloaderWithoutFilesIsNotChanged(): void
    {
        $loader = new ClassLoader($this->path());
        $loader->register();
        try {
            $loader->addClassMap(['Mapped' => '/mapped.php']);
            FreshCode::clearCaches();

            self::assertSame('/mapped.php', $loader->findFile('Mapped'));
        } finally {
            $loader->unregister();
        }
    }
}
