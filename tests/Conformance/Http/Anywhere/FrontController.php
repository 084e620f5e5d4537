<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

/** The three-line script that runs an application under any SAPI. A query lets it register an exit() first. */
trait FrontController
{
    private function frontController(): string
    {
        $autoload = \dirname(__DIR__, 4) . '/vendor/autoload.php';
        $app = __DIR__ . '/app.php';

        return $this->file('index.php', <<<PHP
            <?php
            require '{$autoload}';
            str_ends_with(\$_SERVER['REQUEST_URI'], '?front-registers-exit')
                && register_shutdown_function(static fn() => exit());
            Spindle\Http\Sapi::run('{$app}');
            PHP);
    }
}
