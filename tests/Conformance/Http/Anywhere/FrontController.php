<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

/** The three lines by which an application runs under any SAPI. */
trait FrontController
{
    private function frontController(): string
    {
        $root = \dirname(__DIR__, 4);
        $app = __DIR__ . '/app.php';

        return $this->file('index.php', "<?php\nrequire '{$root}/vendor/autoload.php';\nSpindle\\Http\\Sapi::run('{$app}');\n");
    }
}
