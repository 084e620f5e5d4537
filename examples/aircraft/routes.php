<?php

declare(strict_types=1);

/**
 * This file has been auto-generated
 * by the Symfony Routing Component.
 */

return [
    false, // $matchHost
    [ // $staticRoutes
        '/aircraft' => [
            [['_route' => 'GET /aircraft', '_handler' => 'Aircraft\\Http\\ListAircraft', '_pattern' => '/aircraft'], null, ['GET' => 0, 'HEAD' => 1], null, false, false, null],
            [['_route' => 'POST /aircraft', '_handler' => 'Aircraft\\Http\\AddAircraft', '_pattern' => '/aircraft'], null, ['POST' => 0], null, false, false, null],
        ],
        '/aircraft/import' => [[['_route' => 'POST /aircraft/import', '_handler' => 'Aircraft\\Http\\ImportAircraft', '_pattern' => '/aircraft/import'], null, ['POST' => 0], null, false, false, null]],
        '/aircraft/export' => [[['_route' => 'GET /aircraft/export', '_handler' => 'Aircraft\\Http\\ExportAircraft', '_pattern' => '/aircraft/export'], null, ['GET' => 0, 'HEAD' => 1], null, false, false, null]],
        '/aircraft/events' => [[['_route' => 'GET /aircraft/events', '_handler' => 'Aircraft\\Http\\FollowAircraft', '_pattern' => '/aircraft/events'], null, ['GET' => 0, 'HEAD' => 1], null, false, false, null]],
        '/reports' => [[['_route' => 'POST /reports', '_handler' => 'Aircraft\\Http\\MakeReport', '_pattern' => '/reports'], null, ['POST' => 0], null, false, false, null]],
        '/sleep' => [[['_route' => 'GET /sleep', '_handler' => 'Aircraft\\Http\\Sleep', '_pattern' => '/sleep'], null, ['GET' => 0, 'HEAD' => 1], null, false, false, null]],
        '/openapi.json' => [[['_route' => 'GET /openapi.json', '_handler' => 'Aircraft\\Http\\DescribeApi', '_pattern' => '/openapi.json'], null, ['GET' => 0, 'HEAD' => 1], null, false, false, null]],
    ],
    [ // $regexpList
        0 => '{^(?'
                .'|/aircraft/(?'
                    .'|((?!(?:import|export|events)(?:/|$))[^/]+)(?'
                        .'|(*:65)'
                    .')'
                    .'|((?!(?:import|export|events)(?:/|$))[^/]+)/certificate(*:127)'
                .')'
            .')/?$}sD',
    ],
    [ // $dynamicRoutes
        65 => [
            [['_route' => 'GET /aircraft/{number}', '_handler' => 'Aircraft\\Http\\GetAircraft', '_pattern' => '/aircraft/{number}'], ['number'], ['GET' => 0, 'HEAD' => 1], null, false, true, null],
            [['_route' => 'PUT /aircraft/{number}', '_handler' => 'Aircraft\\Http\\UpdateAircraft', '_pattern' => '/aircraft/{number}'], ['number'], ['PUT' => 0], null, false, true, null],
            [['_route' => 'DELETE /aircraft/{number}', '_handler' => 'Aircraft\\Http\\DeleteAircraft', '_pattern' => '/aircraft/{number}'], ['number'], ['DELETE' => 0], null, false, true, null],
        ],
        127 => [
            [['_route' => 'GET /aircraft/{number}/certificate', '_handler' => 'Aircraft\\Http\\RenderCertificate', '_pattern' => '/aircraft/{number}/certificate'], ['number'], ['GET' => 0, 'HEAD' => 1], null, false, false, null],
            [null, null, null, null, false, false, 0],
        ],
    ],
    null, // $checkCondition
];
