<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

/** The three-line script that runs an application under any SAPI. */
trait FrontController
{
    private function frontController(): string
    {
        $autoload = \dirname(__DIR__, 4) . '/vendor/autoload.php';
        $app = __DIR__ . '/app.php';

        return $this->file('index.php', "<?php\nrequire '{$autoload}';\nSpindle\\Http\\Sapi::run('{$app}');\n");
    }
}
